//! The record of a review: who reviewed which pack of reports, and the outcome.
//!
//! The reviewer's name is personal data. The reviewer adds it for this purpose.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::model::{Digest, Instant};

/// The maximum length of a name or a ticket.
pub const REVIEW_TEXT_BYTES_MAX: usize = 200;

/// The outcome of a review.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, EnumString,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str, parse_err_ty = String, parse_err_fn = unknown_outcome)]
pub enum ReviewOutcome {
    /// No action is needed.
    Accepted,
    /// Somebody acts on it.
    FollowedUp,
    /// The pack is not usable.
    Rejected,
}

fn unknown_outcome(text: &str) -> String {
    format!("unknown outcome {text:?}: expected accepted, followed-up or rejected")
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRecord {
    pub reviewed_at: Instant,
    pub reviewer: String,
    /// The digest of the pack's list of hashes, which covers every file in the pack.
    pub pack_sha256: Digest,
    /// The period of the pack, half-open.
    pub period_from: Instant,
    pub period_to: Instant,
    /// The ids of its reports.
    pub reports: Vec<String>,
    /// The number of detections in all reports.
    pub findings: u64,
    pub outcome: ReviewOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// Checks a text that a person gives for a ledger line, such as a name, a reason or the number of a ticket.
pub fn check_ledger_text(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("the text is empty".to_owned());
    }
    if text.len() > REVIEW_TEXT_BYTES_MAX {
        return Err(format!("the text has {} bytes, more than {REVIEW_TEXT_BYTES_MAX}", text.len()));
    }
    if text.chars().any(char::is_control) {
        return Err("the text contains control characters".to_owned());
    }
    if text.contains("://") {
        return Err("the text contains a URL, and a ledger line must not: give the number alone".to_owned());
    }
    // A ledger line is permanent, so it must not contain a person's address.
    if text.contains('@') {
        return Err("the text contains an address, and a ledger line must not: give a name or a number".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_for_the_ledger_is_short_plain_and_no_url() {
        for text in ["R. Viewer", "SEC-1234", "Zoë, night shift", &"x".repeat(200)] {
            assert_eq!(check_ledger_text(text), Ok(()), "{text}");
        }
        for text in ["", "  ", "a\nb", "\u{1b}[2J", "https://tickets.example/1", "ann@own.example", &"x".repeat(201)] {
            assert!(check_ledger_text(text).is_err(), "{text}");
        }
        for outcome in [ReviewOutcome::Accepted, ReviewOutcome::FollowedUp, ReviewOutcome::Rejected] {
            assert_eq!(outcome.into_str().parse(), Ok(outcome));
            assert_eq!(serde_json::to_string(&outcome).unwrap(), format!("\"{}\"", outcome.into_str()));
        }
        assert!("other".parse::<ReviewOutcome>().unwrap_err().ends_with("accepted, followed-up or rejected"));
    }
}

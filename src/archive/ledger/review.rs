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
    if let Some(c) = text.chars().find(|c| is_invisible(*c)) {
        return Err(format!("the text contains the invisible character U+{:04X}: remove it", u32::from(c)));
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

/// Control characters, line separators, marks of the writing direction and other characters without a shape: two texts that look
/// equal could differ. Not U+200C and U+200D, which Persian and Indian names need.
fn is_invisible(c: char) -> bool {
    let has_no_shape = matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
    let is_tag = matches!(c, '\u{e0000}'..='\u{e007f}');
    let is_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') || is_direction || has_no_shape || is_tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_for_the_ledger_is_short_plain_and_no_url() {
        for text in ["R. Viewer", "SEC-1234", "Zoë, night shift", "مژده\u{200c}گانی", "שרה", &"x".repeat(200)]
        {
            assert_eq!(check_ledger_text(text), Ok(()), "{text}");
        }
        for text in ["", "  ", "a\nb", "\u{1b}[2J", "https://tickets.example/1", "ann@own.example", &"x".repeat(201)] {
            assert!(check_ledger_text(text).is_err(), "{text}");
        }
        for (c, name) in [
            ('\0', "U+0000"),
            ('\u{85}', "U+0085"),
            ('\u{ad}', "U+00AD"),
            ('\u{61c}', "U+061C"),
            ('\u{200b}', "U+200B"),
            ('\u{200e}', "U+200E"),
            ('\u{200f}', "U+200F"),
            ('\u{2028}', "U+2028"),
            ('\u{2029}', "U+2029"),
            ('\u{202a}', "U+202A"),
            ('\u{202e}', "U+202E"),
            ('\u{2060}', "U+2060"),
            ('\u{2066}', "U+2066"),
            ('\u{2069}', "U+2069"),
            ('\u{206f}', "U+206F"),
            ('\u{feff}', "U+FEFF"),
            ('\u{fffa}', "U+FFFA"),
            ('\u{e0041}', "U+E0041"),
        ] {
            let said = format!("the text contains the invisible character {name}: remove it");
            assert_eq!(check_ledger_text(&format!("R. {c}Viewer")), Err(said));
        }
        for outcome in [ReviewOutcome::Accepted, ReviewOutcome::FollowedUp, ReviewOutcome::Rejected] {
            assert_eq!(outcome.into_str().parse(), Ok(outcome));
            assert_eq!(serde_json::to_string(&outcome).unwrap(), format!("\"{}\"", outcome.into_str()));
        }
        assert!("other".parse::<ReviewOutcome>().unwrap_err().ends_with("accepted, followed-up or rejected"));
    }
}

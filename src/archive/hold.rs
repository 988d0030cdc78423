//! Legal holds: what must stay although a policy or an order would remove it. Every act stands in the ledger.
//!
//! A hold by subject keeps a keyed digest of the subject, never the subject: see [`Salts::subject`](super::Salts::subject).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{Digest, Instant, LedgerSeq, Range};
use crate::planted::{self, Bug};

use super::Dataset;

/// Bytes of an id.
pub const HOLD_ID_BYTES_MAX: usize = 64;
/// Bytes of a reason or a name.
pub const HOLD_TEXT_BYTES_MAX: usize = 200;

/// Whom a hold reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldScope {
    /// The team in whose ledger it stands.
    Team,
    /// Every team of the archive, those that come later as well.
    All,
}

impl HoldScope {
    pub const fn as_str(self) -> &'static str {
        match self {
            HoldScope::Team => "team",
            HoldScope::All => "all",
        }
    }
}

/// A hold as it was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldAdded {
    /// The case's number, chosen by whoever adds the hold.
    pub id: String,
    pub reason: String,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub at: Instant,
    /// The period of event time that it covers, half-open; without a bound it has no end on that side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Instant>,
    pub scope: HoldScope,
    /// The keyed digest of the one subject that it is about; none: it covers everything of its period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Digest>,
}

/// The end of a hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldReleased {
    pub id: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub at: Instant,
}

/// One act, as a line says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldRecord {
    Add(HoldAdded),
    Release(HoldReleased),
}

/// A hold as it stands after a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub added: HoldAdded,
    /// The line that added it.
    pub seq: LedgerSeq,
    /// None: it stands.
    pub released: Option<HoldReleased>,
}

/// The holds of a ledger by their ids, released ones as well.
pub type Holds = BTreeMap<String, Hold>;

/// Why a line's acts on holds do not fit those before.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HoldError {
    #[error("hold {id} is there already: give another id")]
    Twice { id: String },
    #[error("hold {id} is not there: nothing to release")]
    Unknown { id: String },
    #[error("hold {id} was released already")]
    Released { id: String },
    #[error("hold {id}: {reason}")]
    Text { id: String, reason: String },
    #[error("hold {id}: its period ends at {to}, not after its beginning at {from}")]
    Period { id: String, from: Instant, to: Instant },
}

impl Hold {
    pub fn stands(&self) -> bool {
        self.released.is_none()
    }

    /// The period of event time that it covers.
    pub fn period(&self) -> Range {
        let start = self.added.from.unwrap_or(Instant::from_nanos(i64::MIN));
        Range::new(start, self.added.to.unwrap_or(Instant::from_nanos(i64::MAX)).max(start))
    }

    /// Whether it is about rows of `dataset` whose time lies in `period`, as long as it stands.
    pub fn spans(&self, dataset: Dataset, period: Range) -> bool {
        // The time of an event in quarantine may be unknown, or wrong: every period may be its own.
        dataset == Dataset::Quarantine || self.period().overlaps(&period)
    }

    fn covers(&self, dataset: Dataset, period: Range, subject: Option<Digest>) -> bool {
        let is_of_subject = self.added.subject.is_none() || subject.is_none() || self.added.subject == subject;
        self.stands() && self.spans(dataset, period) && is_of_subject
    }
}

/// The holds that cover rows of `dataset` whose time lies in `period`. With `subject` only rows of that subject are meant;
/// without, a hold by subject covers all rows, since any may be the subject's. `holds`: those that reach the team, see
/// [`Archive::holds_on`](super::Archive::holds_on).
pub fn covering<'a>(
    holds: impl IntoIterator<Item = &'a Hold>,
    dataset: Dataset,
    period: Range,
    subject: Option<Digest>,
) -> Vec<&'a Hold> {
    if planted::is(Bug::HoldsForgotten) {
        return Vec::new();
    }
    holds.into_iter().filter(|hold| hold.covers(dataset, period, subject)).collect()
}

/// Checks the acts of one line against the holds before it.
///
/// # Errors
/// See [`HoldError`].
pub fn check_holds(held: &Holds, records: &[HoldRecord]) -> Result<(), HoldError> {
    let mut holds = held.clone();
    for record in records {
        match record {
            HoldRecord::Add(added) => check_added(&holds, added)?,
            HoldRecord::Release(released) => {
                let id = || released.id.clone();
                check_texts(&released.id, &released.reason, released.by.as_deref())?;
                match holds.get(&released.id) {
                    None => return Err(HoldError::Unknown { id: id() }),
                    Some(hold) if !hold.stands() => return Err(HoldError::Released { id: id() }),
                    Some(_) => {}
                }
            }
        }
        apply_hold(&mut holds, record.clone(), LedgerSeq(0));
    }
    Ok(())
}

fn check_added(holds: &Holds, added: &HoldAdded) -> Result<(), HoldError> {
    check_texts(&added.id, &added.reason, added.by.as_deref())?;
    if holds.contains_key(&added.id) {
        return Err(HoldError::Twice { id: added.id.clone() });
    }
    match added.from.zip(added.to) {
        Some((from, to)) if to <= from => Err(HoldError::Period { id: added.id.clone(), from, to }),
        _ => Ok(()),
    }
}

fn check_texts(id: &str, reason: &str, by: Option<&str>) -> Result<(), HoldError> {
    let checked =
        check_hold_id(id).and_then(|()| check_hold_text(reason)).and_then(|()| by.map_or(Ok(()), check_hold_text));
    checked.map_err(|reason| HoldError::Text { id: id.to_owned(), reason })
}

/// Takes over one act that was checked.
pub fn apply_hold(holds: &mut Holds, record: HoldRecord, seq: LedgerSeq) {
    match record {
        HoldRecord::Add(added) => {
            holds.insert(added.id.clone(), Hold { added, seq, released: None });
        }
        HoldRecord::Release(released) => {
            if let Some(hold) = holds.get_mut(&released.id) {
                hold.released = Some(released);
            }
        }
    }
}

/// Whether the text may be a hold's id.
///
/// # Errors
/// What is wrong with it.
pub fn check_hold_id(text: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/#".contains(c);
    match text {
        "" => Err("the id is empty".to_owned()),
        _ if text.len() > HOLD_ID_BYTES_MAX => {
            Err(format!("the id has {} bytes, at most {HOLD_ID_BYTES_MAX} are kept", text.len()))
        }
        _ if !text.chars().all(is_plain) => Err(format!("the id {text:?} is not letters, digits and -_.:/# alone")),
        _ => Ok(()),
    }
}

/// Whether the text may stand in a ledger as a reason, or as a name.
///
/// # Errors
/// What is wrong with it.
pub fn check_hold_text(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("the reason, or the name, is empty".to_owned());
    }
    if text.len() > HOLD_TEXT_BYTES_MAX {
        return Err(format!("the text has {} bytes, at most {HOLD_TEXT_BYTES_MAX} are kept", text.len()));
    }
    if text.chars().any(char::is_control) {
        return Err("the text holds control characters".to_owned());
    }
    // A ledger line stays for ever: no address of a person may stand there.
    match text.contains('@') || text.contains("://") {
        true => Err("the text holds an address, which no ledger line does: give the case's number alone".to_owned()),
        false => Ok(()),
    }
}

/// A subject as it is compared: without spaces around it, and email addresses without case.
pub fn normal_subject(text: &str) -> String {
    let text = text.trim();
    if text.contains('@') { text.to_lowercase() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        format!("{text}T00:00:00Z").parse().unwrap()
    }

    fn added(id: &str, from: Option<&str>, to: Option<&str>, subject: Option<u8>) -> HoldAdded {
        HoldAdded {
            id: id.to_owned(),
            reason: "a case".to_owned(),
            by: None,
            at: at("2026-11-01"),
            from: from.map(at),
            to: to.map(at),
            scope: HoldScope::Team,
            subject: subject.map(|byte| Digest([byte; 32])),
        }
    }

    fn released(id: &str) -> HoldRecord {
        let (id, reason) = (id.to_owned(), "closed".to_owned());
        HoldRecord::Release(HoldReleased { id, reason, by: None, at: at("2026-11-02") })
    }

    fn holds(records: Vec<HoldRecord>) -> Holds {
        let mut holds = Holds::new();
        records.into_iter().for_each(|record| apply_hold(&mut holds, record, LedgerSeq(1)));
        holds
    }

    #[test]
    fn a_hold_covers_its_period_and_its_subject() {
        use Dataset::{Connections, Quarantine};
        let holds = holds(vec![
            HoldRecord::Add(added("march", Some("2026-03-01"), Some("2026-04-01"), None)),
            HoldRecord::Add(added("since", Some("2026-06-15"), None, None)),
            HoldRecord::Add(added("one", None, Some("2025-01-01"), Some(1))),
            HoldRecord::Add(added("gone", None, None, None)),
            released("gone"),
        ]);
        for (case, dataset, from, to, subject, expected) in [
            ("within", Connections, "2026-03-05", "2026-03-06", None, &["march"][..]),
            ("touches its end", Connections, "2026-04-01", "2026-05-01", None, &[]),
            ("touches its beginning", Connections, "2026-02-01", "2026-03-01", None, &[]),
            ("a month that it begins in", Connections, "2026-06-01", "2026-07-01", None, &["since"]),
            ("without an end", Connections, "2030-01-01", "2030-02-01", None, &["since"]),
            ("any row may be the subject's", Connections, "2024-01-01", "2024-02-01", None, &["one"]),
            ("the subject's rows", Connections, "2024-01-01", "2024-02-01", Some(1), &["one"]),
            ("another's rows", Connections, "2024-01-01", "2024-02-01", Some(2), &[]),
            ("all people's rows", Connections, "2026-03-05", "2026-03-06", Some(2), &["march"]),
            ("quarantine has no sure time", Quarantine, "2026-05-01", "2026-05-02", None, &["march", "one", "since"]),
        ] {
            let period = Range::new(at(from), at(to));
            let found = covering(holds.values(), dataset, period, subject.map(|byte| Digest([byte; 32])));
            let found: Vec<&str> = found.iter().map(|hold| hold.added.id.as_str()).collect();
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn acts_that_do_not_fit_are_refused_by_name() {
        let held = holds(vec![
            HoldRecord::Add(added("A", None, None, None)),
            HoldRecord::Add(added("B", None, None, None)),
            released("B"),
        ]);
        let id = |id: &str| id.to_owned();
        let add = |id: &str| HoldRecord::Add(added(id, None, None, None));
        let odd = |change: fn(&mut HoldAdded)| {
            let mut hold = added("C", None, None, None);
            change(&mut hold);
            check_holds(&held, &[HoldRecord::Add(hold)]).err()
        };
        for (case, records, expected) in [
            ("a new one", vec![add("C")], None),
            ("an id twice", vec![add("A")], Some(HoldError::Twice { id: id("A") })),
            ("the id of one that was released", vec![add("B")], Some(HoldError::Twice { id: id("B") })),
            ("twice in one line", vec![add("C"), add("C")], Some(HoldError::Twice { id: id("C") })),
            ("a release", vec![released("A")], None),
            ("of an unknown one", vec![released("C")], Some(HoldError::Unknown { id: id("C") })),
            ("a second one", vec![released("B")], Some(HoldError::Released { id: id("B") })),
            ("added and released at once", vec![add("C"), released("C")], None),
        ] {
            assert_eq!(check_holds(&held, &records).err(), expected, "{case}");
        }
        let (from, to) = (at("2026-02-01"), at("2026-02-01"));
        assert_eq!(
            odd(|hold| (hold.from, hold.to) = (Some(at("2026-02-01")), Some(at("2026-02-01")))),
            Some(HoldError::Period { id: id("C"), from, to })
        );
        for change in [
            (|hold| hold.reason.clear()) as fn(&mut HoldAdded),
            |hold| hold.reason = "about jo@example.com".to_owned(),
            |hold| hold.by = Some("  ".to_owned()),
            |hold| hold.reason = "a\nb".to_owned(),
            |hold| hold.reason = "x".repeat(HOLD_TEXT_BYTES_MAX + 1),
        ] {
            assert!(matches!(odd(change), Some(HoldError::Text { .. })));
        }
        for text in ["", "a b", "jo@example.com", &"x".repeat(65)] {
            assert!(check_hold_id(text).is_err(), "{text}");
        }
        assert_eq!(["CASE-7", "2026/12:3", "x"].map(check_hold_id), [Ok(()), Ok(()), Ok(())]);
    }

    #[test]
    fn addresses_of_people_are_compared_without_case() {
        for (text, expected) in [(" Jo@Example.COM ", "jo@example.com"), ("Host-A", "Host-A"), (" u-1", "u-1")] {
            assert_eq!(normal_subject(text), expected);
        }
    }
}

//! Legal holds: they protect rows from expiry and erasure. The ledger records each added and each released hold.
//!
//! A hold on a subject stores a keyed digest of the subject, never the subject itself: see [`Salts::subject`](crate::archive::Salts::subject).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::model::{Dataset, Digest, Instant, LedgerSeq, Range};
use crate::planted::{self, Bug};

use crate::archive::check_ledger_text;

/// The maximum number of bytes of an id.
pub const HOLD_ID_BYTES_MAX: usize = 64;

/// The teams that a hold protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum HoldScope {
    /// Only the team of the ledger that records it.
    Team,
    /// Every team of the archive, including later teams.
    All,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldAdded {
    /// The number of the case; the user chooses it.
    pub id: String,
    pub reason: String,
    /// The person or department that requested the hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub at: Instant,
    /// The half-open period of event time that the hold covers. A missing bound leaves that side open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Instant>,
    pub scope: HoldScope,
    /// The keyed digest of the hold's subject. `None`: the hold covers all rows of its period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldReleased {
    pub id: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub at: Instant,
}

/// A ledger line's record of one added or released hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldRecord {
    Add(HoldAdded),
    Release(HoldReleased),
}

/// The state of a hold after a ledger line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub added: HoldAdded,
    /// The line that added it.
    pub seq: LedgerSeq,
    /// `None`: the hold is active.
    pub released: Option<HoldReleased>,
}

/// All holds of a ledger by id, including released ones.
pub type Holds = BTreeMap<String, Hold>;

impl Hold {
    pub fn is_active(&self) -> bool {
        self.released.is_none()
    }

    /// The period of event time that the hold covers.
    pub fn period(&self) -> Range {
        let start = self.added.from.unwrap_or(Instant::from_nanos(i64::MIN));
        Range::new(start, self.added.to.unwrap_or(Instant::from_nanos(i64::MAX)).max(start))
    }

    /// Whether the hold covers rows of `dataset` in `period` while it is active.
    pub fn spans(&self, dataset: Dataset, period: Range) -> bool {
        // The time of a quarantined event can be unknown or wrong, so the event can belong to any period.
        dataset == Dataset::Quarantine || self.period().overlaps(&period)
    }

    fn covers(&self, dataset: Dataset, period: Range, subject: Option<Digest>) -> bool {
        let is_of_subject = self.added.subject.is_none() || subject.is_none() || self.added.subject == subject;
        self.is_active() && self.spans(dataset, period) && is_of_subject
    }
}

/// The holds that cover rows of `dataset` in `period`. With `subject`, only that subject's rows count. Without it, a hold on
/// a subject covers all rows, because any row can be about the subject. `holds` are the holds that apply to the team, from
/// [`active_holds`](crate::archive::active_holds()).
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

/// Checks one line's records of holds against the holds of the earlier lines.
///
/// # Errors
/// The contradiction, as a sentence.
pub fn check_holds(held: &Holds, records: &[HoldRecord]) -> Result<(), String> {
    let mut holds = held.clone();
    for record in records {
        let (HoldRecord::Add(HoldAdded { id, reason, by, .. })
        | HoldRecord::Release(HoldReleased { id, reason, by, .. })) = record;
        let texts = || [reason].into_iter().chain(by).try_for_each(|text| check_ledger_text(text));
        check_hold_id(id).and_then(|()| texts()).map_err(|reason| format!("hold {id}: {reason}"))?;
        match (record, holds.get(id)) {
            (HoldRecord::Add(_), Some(_)) => return Err(format!("hold {id} already exists: give another id")),
            (HoldRecord::Add(HoldAdded { from: Some(from), to: Some(to), .. }), None) if to <= from => {
                return Err(format!("hold {id}: its period ends at {to}, which is not after its start at {from}"));
            }
            (HoldRecord::Release(_), None) => {
                return Err(format!("hold {id} does not exist, so it cannot be released"));
            }
            (HoldRecord::Release(_), Some(hold)) if !hold.is_active() => {
                return Err(format!("hold {id} is already released"));
            }
            _ => apply_hold(&mut holds, record.clone(), LedgerSeq(0)),
        }
    }
    Ok(())
}

/// Applies one checked record.
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

pub fn check_hold_id(text: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/#".contains(c);
    match text {
        "" => Err("the id is empty".to_owned()),
        _ if text.len() > HOLD_ID_BYTES_MAX => {
            Err(format!("the id has {} bytes, more than the limit of {HOLD_ID_BYTES_MAX}", text.len()))
        }
        _ if !text.chars().all(is_plain) => Err(format!("the id {text:?} may contain only letters, digits and -_.:/#")),
        _ => Ok(()),
    }
}

/// The form of a subject for comparison, without spaces, invisible marks and control characters around it. An IP address has its
/// canonical form (IPv4 if it is mapped to IPv6) without its zone and without brackets. Anything else has no case, and the Unicode form NFC: a Mac
/// stores names in NFD.
pub fn normal_subject(text: &str) -> String {
    let is_mark = |c| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || is_mark(c));
    match address(text) {
        Some(address) => address.to_canonical().to_string(),
        None if text.is_ascii() => text.to_ascii_lowercase(),
        None => ComposingNormalizerBorrowed::new_nfc().normalize(&without_case(text)).into_owned(),
    }
}

/// An address, also in brackets, with a zone, or with zeros before its decimal numbers: `192.000.002.007`.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let without_zone = || text.split_once('%')?.0.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let is_number = |part: &&str| part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = |part: &str| Some(part).filter(is_number)?.parse().ok();
    let with_zeros = || {
        let numbers: Vec<u8> = text.split('.').map(number).collect::<Option<_>>()?;
        <[u8; 4]>::try_from(numbers).ok().map(IpAddr::from)
    };
    text.parse().ok().or_else(without_zone).or_else(with_zeros)
}

/// Makes texts equal that Unicode's full case folding makes equal: `Straße` and `STRASSE`. The final `ς` is `σ`.
fn without_case(text: &str) -> String {
    let folded = |c: char| match c {
        // The capital of the Turkish `ı` is the `I` of all names with `i`.
        'ı' => c.to_string(),
        _ => c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect(),
    };
    text.chars().map(folded).collect()
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
            ("any row can be about the subject", Connections, "2024-01-01", "2024-02-01", None, &["one"]),
            ("the subject's rows", Connections, "2024-01-01", "2024-02-01", Some(1), &["one"]),
            ("another's rows", Connections, "2024-01-01", "2024-02-01", Some(2), &[]),
            ("all people's rows", Connections, "2026-03-05", "2026-03-06", Some(2), &["march"]),
            (
                "times in quarantine can be wrong",
                Quarantine,
                "2026-05-01",
                "2026-05-02",
                None,
                &["march", "one", "since"],
            ),
        ] {
            let period = Range::new(at(from), at(to));
            let found = covering(holds.values(), dataset, period, subject.map(|byte| Digest([byte; 32])));
            let found: Vec<&str> = found.iter().map(|hold| hold.added.id.as_str()).collect();
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn contradicting_records_of_holds_are_refused() {
        let held = holds(vec![
            HoldRecord::Add(added("A", None, None, None)),
            HoldRecord::Add(added("B", None, None, None)),
            released("B"),
        ]);
        let add = |id: &str| HoldRecord::Add(added(id, None, None, None));
        let odd = |change: fn(&mut HoldAdded)| {
            let mut hold = added("C", None, None, None);
            change(&mut hold);
            check_holds(&held, &[HoldRecord::Add(hold)]).err()
        };
        for (case, records, expected) in [
            ("a new hold", vec![add("C")], None),
            ("an id twice", vec![add("A")], Some("hold A already exists: give another id")),
            ("the id of a released hold", vec![add("B")], Some("hold B already exists: give another id")),
            ("twice in one line", vec![add("C"), add("C")], Some("hold C already exists: give another id")),
            ("a release", vec![released("A")], None),
            (
                "a release of an unknown hold",
                vec![released("C")],
                Some("hold C does not exist, so it cannot be released"),
            ),
            ("a second release", vec![released("B")], Some("hold B is already released")),
            ("added and released at once", vec![add("C"), released("C")], None),
        ] {
            assert_eq!(check_holds(&held, &records).err().as_deref(), expected, "{case}");
        }
        let period = odd(|hold| (hold.from, hold.to) = (Some(at("2026-02-01")), Some(at("2026-02-01"))));
        assert!(period.unwrap().starts_with("hold C: its period ends at "));
        for change in [
            (|hold| hold.reason.clear()) as fn(&mut HoldAdded),
            |hold| hold.reason = "about jo@example.com".to_owned(),
            |hold| hold.by = Some("  ".to_owned()),
            |hold| hold.reason = "a\nb".to_owned(),
            |hold| hold.reason = "x".repeat(201),
        ] {
            assert!(odd(change).unwrap().starts_with("hold C: the text "));
        }
        for text in ["", "a b", "jo@example.com", &"x".repeat(65)] {
            assert!(check_hold_id(text).is_err(), "{text}");
        }
        assert_eq!(["CASE-7", "2026/12:3", "x"].map(check_hold_id), [Ok(()), Ok(()), Ok(())]);
    }

    #[test]
    fn addresses_are_compared_in_one_spelling() {
        for (text, expected) in [
            (" Jo@Example.COM ", "jo@example.com"),
            ("\u{feff}Jo@Example.com \u{200b}\r", "jo@example.com"),
            ("\u{2068}192.0.2.7\u{2069}", "192.0.2.7"),
            ("\u{1}jo@example.com\0", "jo@example.com"),
            ("a\u{200b}b", "a\u{200b}b"),
            ("\u{feff} \u{ad}", ""),
            (" 2001:DB8:0::1", "2001:db8::1"),
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("Host-A", "host-a"),
            (" u-1", "u-1"),
            ("FE80::7%en0", "fe80::7"),
            ("192.0.2.7%20Off", "192.0.2.7%20off"),
            ("Zoe\u{308}", "zo\u{eb}"),
            ("Straße", "strasse"),
            ("STRASSE", "strasse"),
            ("STRAẞE", "strasse"),
            ("ΟΔΥΣΣΕΥΣ", "οδυσσευσ"),
            ("οδυσσευς", "οδυσσευσ"),
            ("İlker", "i\u{307}lker"),
            ("ılker", "ılker"),
            ("oﬃce", "office"),
        ] {
            assert_eq!(normal_subject(text), expected);
        }
    }
}

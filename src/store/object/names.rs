//! The names of the objects of a ledger. They are in the team's directory, beside the day files:
//!
//! ```text
//! line/<number, 12 digits>.jsonl     one line; lines are numbered from 1 across all days, and no number is used twice
//! copy/<number, 12 digits>.jsonl     the lines of the newest day up to that number, so that readers fetch fewer objects; derived
//! head/<day>/<number, 6 digits>      one append to the day's signatures; numbered from 1 each day
//! <day>.jsonl, <day>.heads           the whole day, written when a later day has begun; derived
//! ```

use crate::model::Instant;
use crate::model::path::{ArchivePath, LEDGER, day_start};

/// Number of digits in the name of a line.
const LINE_DIGITS: u32 = 12;

/// The kind of a ledger file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Extension {
    Lines,
    Heads,
}

impl Extension {
    pub(super) const ALL: [Self; 2] = [Self::Lines, Self::Heads];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Lines => "jsonl",
            Self::Heads => "heads",
        }
    }

    /// The directory of the parts, under the team's directory.
    pub(super) const fn place(self) -> &'static str {
        match self {
            Self::Lines => "line",
            Self::Heads => "head",
        }
    }
}

/// A day file, as other code spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LedgerFile<'a> {
    pub(super) directory: &'a str,
    pub(super) extension: Extension,
    /// The day's first instant.
    pub(super) day: Instant,
}

impl<'a> LedgerFile<'a> {
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let (directory, _) = path.rsplit_once('/')?;
        let (extension, day) = match ArchivePath::parse(path)? {
            ArchivePath::Ledger { day, .. } => (Extension::Lines, day),
            ArchivePath::Heads { day, .. } => (Extension::Heads, day),
            _ => return None,
        };
        Some(Self { directory, extension, day })
    }
}

pub(super) fn file(directory: &str, extension: Extension, day: Instant) -> String {
    format!("{directory}/{}.{}", day.day(), extension.name())
}

pub(super) fn line(directory: &str, number: u64) -> String {
    format!("{directory}/line/{number:012}.jsonl")
}

pub(super) fn copy(directory: &str, number: u64) -> String {
    format!("{directory}/copy/{number:012}.jsonl")
}

pub(super) fn head(directory: &str, day: Instant, number: u64) -> String {
    format!("{directory}/head/{}/{number:06}", day.day())
}

/// The number of a line or copy; `None` for any other name.
pub(super) fn line_number(directory: &str, place: &str, path: &str) -> Option<u64> {
    let digits = path.strip_prefix(directory)?.strip_prefix('/')?.strip_prefix(place)?.strip_prefix('/')?;
    number(digits.strip_suffix(".jsonl")?, LINE_DIGITS as usize)
}

/// Whether an object is a line or a part of signatures: these are created once. Copies and whole days can be overwritten.
pub(super) fn is_written_once(path: &str) -> bool {
    let directory = path.split('/').take(2).collect::<Vec<_>>().join("/");
    line_number(&directory, "line", path).is_some() || head_number(&directory, path).is_some()
}

/// The day and number of a part of a day's signatures.
pub(super) fn head_number(directory: &str, path: &str) -> Option<(Instant, u64)> {
    let (day, digits) = path.strip_prefix(directory)?.strip_prefix("/head/")?.split_once('/')?;
    let start: Instant = format!("{day}T00:00:00Z").parse().ok()?;
    Some((start, number(digits, 6)?)).filter(|_| start.day() == day)
}

fn number(digits: &str, length: usize) -> Option<u64> {
    let is_plain = digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| is_plain && *number > 0)
}

/// The depth below the ledger directory: 0 for itself, 1 for a team's directory, more for deeper ones.
pub(super) fn depth_in_ledger(directory: &str) -> Option<usize> {
    let rest = directory.strip_prefix(LEDGER)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.matches('/').count())
}

/// Whether a directory holds parts, which lists do not show.
pub(super) fn is_place_of_parts(directory: &str) -> bool {
    depth_in_ledger(directory) == Some(2) && matches!(directory.rsplit('/').next(), Some("line" | "copy" | "head"))
}

/// Whether an object is a part.
pub(super) fn is_hidden(path: &str) -> bool {
    let mut places = path.match_indices('/').map(|(at, _)| &path[..at]);
    places.any(is_place_of_parts)
}

/// The day in a line's member `at`.
pub(super) fn day_in_line(line: &[u8]) -> Option<Instant> {
    const MEMBER: &[u8] = b"\"at\":\"";
    let rest = &line[memchr::memmem::find(line, MEMBER)? + MEMBER.len()..];
    let text = std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()?;
    text.parse().ok().map(day_start)
}

/// The number in a line's member `seq`; `None` if it is too large for a name.
pub(super) fn number_in_line(line: &[u8]) -> Option<u64> {
    const MEMBER: &[u8] = b"\"seq\":";
    let rest = &line[memchr::memmem::find(line, MEMBER)? + MEMBER.len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok().filter(|number| *number < 10_u64.pow(LINE_DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEAM: &str = "ledger/team=a";

    #[test]
    fn object_names_round_trip() {
        let day: Instant = "2026-11-20T00:00:00Z".parse().unwrap();
        let path = file(TEAM, Extension::Heads, day);
        assert_eq!(LedgerFile::parse(&path), Some(LedgerFile { directory: TEAM, extension: Extension::Heads, day }));
        assert_eq!(line_number(TEAM, "line", &line(TEAM, 7)), Some(7));
        assert_eq!(line_number(TEAM, "copy", &copy(TEAM, 123_456)), Some(123_456));
        assert_eq!(head_number(TEAM, &head(TEAM, day, 9)), Some((day, 9)));
        for path in ["line/7.jsonl", "line/000000000000.jsonl", "line/00000000000x.jsonl", "line/000000000007"] {
            assert_eq!(line_number(TEAM, "line", &format!("{TEAM}/{path}")), None, "{path}");
        }
        assert_eq!(head_number(TEAM, "ledger/team=a/head/2026-1-20/000001"), None);
    }

    #[test]
    fn a_line_has_a_number_that_fits_its_name() {
        let number = |text: &str| number_in_line(format!("{{\"v\":1,\"seq\":{text},").as_bytes());
        assert_eq!((number("7"), number("999999999999")), (Some(7), Some(999_999_999_999)));
        assert_eq!((number("1000000000000"), number("18446744073709551615")), (None, None));
    }

    #[test]
    fn lists_hide_only_parts_of_uploads() {
        let day: Instant = "2026-11-20T00:00:00Z".parse().unwrap();
        for hidden in [line(TEAM, 7), copy(TEAM, 7), head(TEAM, day, 7), format!("{TEAM}/line/stray")] {
            assert!(is_hidden(&hidden), "{hidden}");
        }
        for shown in ["ledger/team=a/2026-11-20.jsonl", "ledger/team=a/x", "tables/d/line/x", "ledgers/team=a/line/x"] {
            assert!(!is_hidden(shown), "{shown}");
        }
    }
}

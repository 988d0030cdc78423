//! The files of a team's ledger, one a day.

use crate::model::path::{ArchivePath, ledger_of};
use crate::model::{Digest, Instant, TeamKey};
use crate::store::{Store, StoreError, Tail};

use super::line::{LedgerLine, LineError, is_zeroed};
use super::text_lines::{TextLine, TextLines};
use crate::archive::ArchiveError;

/// The end of a ledger: its newest file, the file's length, and the bytes of an interrupted append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerEnd {
    pub day: Option<Instant>,
    pub len: u64,
    pub torn: u64,
}

impl LedgerEnd {
    /// Cuts off the bytes of an interrupted append. Removes the file if it holds no line: it would hold back a later line of an
    /// earlier day, after the clock was set back. `path` gives the path of a day's file. Idempotent.
    pub fn cut(self, store: &dyn Store, path: impl Fn(Instant) -> String) -> Result<(), StoreError> {
        let Some(path) = self.day.map(path) else { return Ok(()) };
        if self.torn > 0 {
            store.append(&path, Tail { keep: self.len, torn: self.torn }, &[])?;
        }
        if self.len == 0 { store.remove(&[&path]) } else { Ok(()) }
    }
}

/// The path of a day's file.
pub fn ledger_path(key: &TeamKey, day: Instant) -> String {
    ArchivePath::Ledger { team: key.clone(), day }.to_string()
}

/// The days of a team's ledger, oldest first, each with the bytes of its file.
pub fn ledger_files(store: &dyn Store, key: &TeamKey) -> Result<Vec<(Instant, u64)>, StoreError> {
    let listed = store.list(&ledger_of(key))?;
    let files = listed.iter().filter_map(|entry| match ArchivePath::parse(&entry.path) {
        Some(ArchivePath::Ledger { day, .. }) => Some((day, entry.bytes)),
        _ => None,
    });
    Ok(files.collect())
}

/// The days of [`ledger_files`].
pub fn ledger_days(store: &dyn Store, key: &TeamKey) -> Result<Vec<Instant>, StoreError> {
    Ok(ledger_files(store, key)?.into_iter().map(|(day, _)| day).collect())
}

/// The valid lines of a day, with their hashes. A torn line says nothing.
pub fn lines_of(store: &dyn Store, key: &TeamKey, day: Instant) -> Result<Vec<(LedgerLine, Digest)>, ArchiveError> {
    let path = ledger_path(key, day);
    let mut lines = Vec::new();
    for line in TextLines::new(&path, store.read(&path)?, 0) {
        lines.extend(LedgerLine::decode(&line?.text));
    }
    Ok(lines)
}

/// One text of a ledger file: a line, or what an interruption or an alteration left.
#[derive(Debug, PartialEq, Eq)]
pub enum LedgerText {
    Line(LedgerLine, Digest),
    /// A whole valid line that lacks only its newline.
    Unended(LedgerLine, Digest),
    /// A whole valid line with another byte instead of its newline: no interruption leaves this.
    Altered(LedgerLine, Digest),
    /// A torn line: the append was interrupted and never acknowledged.
    Torn,
    Invalid(LineError),
}

impl LedgerText {
    /// A loss of power can leave zeros in the last line of the last file.
    pub fn of(text: &TextLine, is_last_file: bool) -> Self {
        match (LedgerLine::decode(&text.text), text.has_newline) {
            (Ok((line, hash)), true) => Self::Line(line, hash),
            (Ok((line, hash)), false) => Self::Unended(line, hash),
            (Err(e), true) => match is_last_file && text.is_last && is_zeroed(&text.text, text.offset) {
                true => Self::Torn,
                false => Self::Invalid(e),
            },
            (Err(_), false) => match text.text.as_slice() {
                // A disk leaves zeros in a sector that it did not write.
                [line @ .., 1..=u8::MAX] => {
                    LedgerLine::decode(line).map_or(Self::Torn, |(line, hash)| Self::Altered(line, hash))
                }
                _ => Self::Torn,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::{GENESIS, KIND_COMMIT};
    use super::*;
    use crate::archive::Body;
    use crate::archive::random::Nonce;
    use crate::model::{LedgerSeq, TeamId};

    #[test]
    fn the_texts_of_a_ledger_are_classified() {
        let line = LedgerLine {
            v: 1,
            archive_id: "a1".to_owned(),
            team_id: TeamId::from("t"),
            seq: LedgerSeq(1),
            prev: GENESIS,
            at: "2026-11-20T08:00:00.5Z".parse().unwrap(),
            nonce: Nonce(0xab),
            kind: KIND_COMMIT.to_owned(),
            body: Body::default(),
        };
        let (bytes, hash) = line.encode();
        let whole = &bytes[..bytes.len() - 1];
        let with = |end: u8| [whole, &[end]].concat();
        let of = |text: &[u8], has_newline: bool, is_last: bool| {
            LedgerText::of(&TextLine { offset: 0, text: text.to_vec(), has_newline, is_last }, true)
        };
        for (case, text, expected) in [
            ("its first byte", whole[..1].to_vec(), LedgerText::Torn),
            ("all but its last byte", whole[..whole.len() - 1].to_vec(), LedgerText::Torn),
            ("no newline", whole.to_vec(), LedgerText::Unended(line.clone(), hash)),
            ("another byte", with(0x0b), LedgerText::Altered(line.clone(), hash)),
            ("a zero", with(0), LedgerText::Torn),
            ("only zeros", vec![0; 300], LedgerText::Torn),
        ] {
            assert_eq!(of(&text, false, true), expected, "{case}");
        }
        assert_eq!(of(whole, true, false), LedgerText::Line(line, hash));
        assert_eq!(of(&[0; 300], true, true), LedgerText::Torn);
        assert!(matches!(of(&[0; 300], true, false), LedgerText::Invalid(_)), "zeros before other lines");
        assert!(matches!(of(&whole[1..], true, true), LedgerText::Invalid(_)));
    }
}

//! The files of a team's ledger, one a day.

use crate::model::path::{ArchivePath, ledger_of};
use crate::model::{Digest, Instant, TeamKey};
use crate::store::{Store, StoreError};

use super::ArchiveError;
use super::ledger::Line;
use super::text_lines::TextLines;

/// The end of a ledger: its newest file, the file's length, and the bytes of an interrupted append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerEnd {
    pub day: Option<Instant>,
    pub len: u64,
    pub torn: u64,
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
pub fn lines_of(store: &dyn Store, key: &TeamKey, day: Instant) -> Result<Vec<(Line, Digest)>, ArchiveError> {
    let path = ArchivePath::Ledger { team: key.clone(), day }.to_string();
    let mut lines = Vec::new();
    for (line, number) in TextLines::new(store.read(&path)?, 0).zip(1..) {
        lines.extend(Line::decode(&line.map_err(|fault| fault.at(&path, number))?.text));
    }
    Ok(lines)
}

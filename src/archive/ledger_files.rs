//! The files of a team's ledger, one a day.

use crate::model::Instant;

use super::path::{ArchivePath, TeamKey, ledger_of};
use super::store::{Store, StoreError};

/// The end of a ledger: its newest file, the file's length, and the bytes of an interrupted append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerEnd {
    pub day: Option<Instant>,
    pub len: u64,
    pub torn: u64,
}

/// The days of a team's ledger, oldest first, each with the bytes of its file.
///
/// # Errors
/// When the store cannot list.
pub fn ledger_files(store: &dyn Store, key: &TeamKey) -> Result<Vec<(Instant, u64)>, StoreError> {
    let listed = store.list(&ledger_of(key))?;
    let files = listed.iter().filter_map(|entry| match ArchivePath::parse(&entry.path) {
        Some(ArchivePath::Ledger { day, .. }) => Some((day, entry.bytes)),
        _ => None,
    });
    Ok(files.collect())
}

/// The days of [`ledger_files`].
///
/// # Errors
/// When the store cannot list.
pub fn ledger_days(store: &dyn Store, key: &TeamKey) -> Result<Vec<Instant>, StoreError> {
    Ok(ledger_files(store, key)?.into_iter().map(|(day, _)| day).collect())
}

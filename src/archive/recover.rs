//! Repairs the end of a ledger before a team is written.

use crate::planted::{self, Bug};

use super::path::{ArchivePath, TeamKey};
use super::replay::Replay;
use super::store::{Store, StoreError, Tail};

/// The remains of an earlier writer that the opening found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Bytes of an interrupted append; the opening dropped them.
    pub torn_bytes: u64,
}

/// Cuts a torn line off the end of a ledger, and syncs the last line: the earlier writer can have died between write and sync.
/// Idempotent.
///
/// # Errors
/// When the store fails.
pub fn recover(store: &dyn Store, key: &TeamKey, replay: &Replay) -> Result<(), StoreError> {
    let ledger = |day| ArchivePath::Ledger { team: key.clone(), day }.to_string();
    if let (Some(day), 1..) = (replay.end.day, replay.end.torn)
        && !planted::is(Bug::TornLineKept)
    {
        store.append(&ledger(day), Tail { keep: replay.end.len, torn: replay.end.torn }, &[])?;
    }
    match &replay.last {
        // A writer syncs a line before it begins a later file.
        Some(last) if replay.end.day == Some(last.day) => {
            let torn = if last.is_unended { last.bytes.len() as u64 - 1 } else { 0 };
            store.append(&ledger(last.day), Tail { keep: last.offset, torn }, &last.bytes)
        }
        _ => Ok(()),
    }
}

//! What opening a team for writing does with the end of its ledger.

use crate::planted::{self, Bug};

use super::path::{ArchivePath, TeamKey};
use super::replay::Replay;
use super::store::{Store, StoreError, Tail};

/// What opening a team for writing found left over by an earlier writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Bytes of an interrupted append, which were dropped.
    pub torn_bytes: u64,
}

/// Cuts a torn line off the end of a ledger, and makes the last line durable: the writer before may have died between
/// writing and syncing it. Done again, it changes nothing.
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
        // A writer that began a later file had found this line durable.
        Some(last) if replay.end.day == Some(last.day) => {
            let torn = if last.is_unended { last.bytes.len() as u64 - 1 } else { 0 };
            store.append(&ledger(last.day), Tail { keep: last.offset, torn }, &last.bytes)
        }
        _ => Ok(()),
    }
}

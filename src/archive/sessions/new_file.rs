//! A new session file.

use std::collections::HashSet;

use arrow::array::RecordBatch;

use crate::model::ConnectionId;

use super::super::FileEntry;
use super::columns::Sum;

/// A new file: the rows of its input files, minus dropped rows, plus new rows.
#[derive(Debug)]
pub struct SessionsChange {
    pub inputs: Vec<FileEntry>,
    /// Each id has a row in one of the inputs.
    pub(super) drop_ids: HashSet<ConnectionId>,
    pub dropped: Sum,
    pub(super) batches: Vec<RecordBatch>,
    pub added: Sum,
    /// Times of the dropped and new rows, in microseconds.
    pub(super) changed: Vec<i64>,
}

impl SessionsChange {
    pub fn rows(&self) -> u64 {
        let held: u64 = self.inputs.iter().map(|file| file.rows).sum();
        (held + self.added.rows).saturating_sub(self.dropped.rows)
    }

    /// The rows of the new file, if all of them are new.
    pub fn only_new(&self) -> Option<Vec<RecordBatch>> {
        self.inputs.is_empty().then(|| self.batches.clone())
    }
}

//! A new session file.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::model::ConnectionId;

use super::super::FileEntry;
use super::columns::Sum;

/// A new file: the rows of its input files, minus dropped rows, plus new rows.
#[derive(Debug)]
pub struct SessionsChange {
    pub inputs: Vec<FileEntry>,
    /// Each id has a row in one of the inputs.
    pub drop_ids: Arc<HashSet<ConnectionId>>,
    pub dropped: Sum,
    pub batches: Vec<RecordBatch>,
    pub added: Sum,
}

impl SessionsChange {
    pub fn rows(&self) -> u64 {
        let held: u64 = self.inputs.iter().map(|file| file.rows).sum();
        (held + self.added.rows).saturating_sub(self.dropped.rows)
    }
}

//! The files that a commit writes, before they exist.

use arrow::array::RecordBatch;

use crate::model::{ConnectionIds, Dataset, FileRole, Instant};

use crate::archive::FileEntry;
use crate::archive::ledger::rows_sum::RowsSum;

/// One file to write.
#[derive(Debug)]
pub struct PlannedFile {
    pub dataset: Dataset,
    pub role: FileRole,
    pub start: Instant,
    /// Live files that this file replaces.
    pub inputs: Vec<FileEntry>,
    pub rows: MergedRows,
}

/// The rows of the inputs, minus the sessions that the commit drops, merged with new sorted rows.
#[derive(Debug, Default)]
pub struct MergedRows {
    pub batches: Vec<RecordBatch>,
    pub added: RowsSum,
    /// Each id has a row in one of the inputs.
    pub drop_ids: ConnectionIds,
    pub dropped: RowsSum,
}

impl MergedRows {
    pub fn new((batches, added): (Vec<RecordBatch>, RowsSum)) -> Self {
        Self { batches, added, ..Self::default() }
    }

    /// Takes in more new rows, which come after these.
    pub fn push(&mut self, batches: Vec<RecordBatch>, sum: RowsSum) {
        self.added = self.added.plus(sum);
        self.batches.extend(batches);
    }
}

impl PlannedFile {
    /// The rows that the file will have: from the new rows and from the ledger's entries of the inputs.
    pub fn sum(&self) -> RowsSum {
        RowsSum::of_files(&self.inputs).plus(self.rows.added).less(self.rows.dropped)
    }
}

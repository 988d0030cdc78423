//! The files that a commit writes, before they exist.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::model::{ConnectionIds, Dataset, FileRole, Instant, InventoryPart, InventoryRow, RejectRow};

use super::FileEntry;
use super::rows_sum::RowsSum;

/// One file to write.
#[derive(Debug)]
pub struct PlannedFile {
    pub dataset: Dataset,
    pub role: FileRole,
    pub start: Instant,
    /// Live files that this file replaces.
    pub inputs: Vec<FileEntry>,
    pub content: PlannedRows,
}

#[derive(Debug)]
pub enum PlannedRows {
    Merged(MergedRows),
    /// New rows; or the remaining rows of one input.
    Rejects(Vec<RejectRow>),
    /// The rows of the inputs, which are sorted by time, and later new rows.
    Inventory(InventoryPart, Vec<InventoryRow>),
}

/// The rows of the inputs, minus the sessions that the commit drops, merged with new sorted rows.
#[derive(Debug, Default)]
pub struct MergedRows {
    pub batches: Vec<RecordBatch>,
    pub added: RowsSum,
    /// Each id has a row in one of the inputs.
    pub drop_ids: Arc<ConnectionIds>,
    pub dropped: RowsSum,
}

impl MergedRows {
    /// Takes in more new rows, which come after these.
    pub fn push(&mut self, batches: Vec<RecordBatch>, sum: RowsSum) {
        self.added = self.added.plus(sum);
        self.batches.extend(batches);
    }
}

impl PlannedFile {
    /// The number of rows that the file will have.
    pub fn rows(&self) -> u64 {
        let held = RowsSum::of_files(&self.inputs);
        match &self.content {
            PlannedRows::Merged(rows) => held.plus(rows.added).less(rows.dropped).rows,
            PlannedRows::Rejects(rows) => rows.len() as u64,
            PlannedRows::Inventory(_, rows) => held.rows + rows.len() as u64,
        }
    }
}

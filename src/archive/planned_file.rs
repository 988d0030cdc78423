//! The files that a commit writes, before they exist.

use arrow::array::RecordBatch;

use crate::model::{Dataset, FileRole, Instant, InventoryPart, InventoryRow, RejectRow, Stream};

use super::FileEntry;
use super::sessions::SessionsChange;
use super::table::{RowsDigest, rows_of};

/// One file to write.
#[derive(Debug)]
pub struct PlannedFile {
    pub role: FileRole,
    pub start: Instant,
    pub content: PlannedRows,
}

#[derive(Debug)]
pub enum PlannedRows {
    /// New sorted rows, and live files that this file replaces.
    Events {
        stream: Stream,
        inputs: Vec<FileEntry>,
        batches: Vec<RecordBatch>,
        /// The digest of the new rows.
        digest: RowsDigest,
    },
    /// New rows; or the remaining rows of one live file.
    Rejects {
        inputs: Vec<FileEntry>,
        rows: Vec<RejectRow>,
    },
    Sessions(SessionsChange),
    /// Live files sorted by time, and new rows that are later.
    Inventory {
        part: InventoryPart,
        inputs: Vec<FileEntry>,
        rows: Vec<InventoryRow>,
    },
}

impl PlannedFile {
    pub fn dataset(&self) -> Dataset {
        match &self.content {
            PlannedRows::Events { stream, .. } => (*stream).into(),
            PlannedRows::Rejects { .. } => Dataset::Quarantine,
            PlannedRows::Sessions(_) => Dataset::Sessions,
            PlannedRows::Inventory { part, .. } => Dataset::Inventory(*part),
        }
    }

    /// Live files that this file replaces.
    pub fn inputs(&self) -> &[FileEntry] {
        match &self.content {
            PlannedRows::Events { inputs, .. }
            | PlannedRows::Inventory { inputs, .. }
            | PlannedRows::Rejects { inputs, .. } => inputs,
            PlannedRows::Sessions(change) => &change.inputs,
        }
    }

    /// The number of rows that the file will have.
    pub fn rows(&self) -> u64 {
        let held = || self.inputs().iter().map(|file| file.rows).sum::<u64>();
        match &self.content {
            PlannedRows::Events { batches, .. } => held() + rows_of(batches),
            PlannedRows::Rejects { rows, .. } => rows.len() as u64,
            PlannedRows::Sessions(change) => change.rows(),
            PlannedRows::Inventory { rows, .. } => held() + rows.len() as u64,
        }
    }
}

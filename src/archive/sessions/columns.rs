//! Sessions as columns, with their digest.

use arrow::array::RecordBatch;

use crate::model::SessionRow;

use super::super::FileEntry;
use super::super::salts::Salts;
use super::super::table::{BATCH_ROWS_MAX, RowsDigest, by_parts, digest_rows, session_batch};

/// The number and digest of some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub rows: u64,
    pub digest: RowsDigest,
}

impl Sum {
    fn add(&mut self, rows: u64, digest: RowsDigest) {
        self.rows += rows;
        self.digest = self.digest.plus(digest);
    }

    pub fn of_files<'a>(files: impl Iterator<Item = &'a FileEntry>) -> Self {
        let mut sum = Self::default();
        files.for_each(|file| sum.add(file.rows, file.rows_digest.into()));
        sum
    }
}

/// Sorts sessions by time and connection, and converts them to columns.
pub fn in_order(rows: &mut [&SessionRow], salts: &Salts) -> Result<(Vec<RecordBatch>, Sum), String> {
    fn key(row: &SessionRow) -> (i64, &str) {
        (row.first_event_at.micros(), row.connection_id.as_str())
    }
    rows.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    if let Some(pair) = rows.windows(2).find(|pair| pair[0].connection_id == pair[1].connection_id) {
        return Err(format!("session {} occurs twice", pair[0].connection_id));
    }
    batches(rows, salts)
}

/// Converts sessions to columns, in the given order.
pub fn batches(rows: &[&SessionRow], salts: &Salts) -> Result<(Vec<RecordBatch>, Sum), String> {
    let batches = by_parts(rows, BATCH_ROWS_MAX, |some| {
        let batch = session_batch(some.iter().copied())?;
        let digest = digest_rows(&batch, salts)?;
        Ok::<_, String>((batch, digest))
    })?;
    let mut sum = Sum::default();
    batches.iter().for_each(|(batch, digest)| sum.add(batch.num_rows() as u64, *digest));
    Ok((batches.into_iter().map(|(batch, _)| batch).collect(), sum))
}

//! A new session file: its rows as columns, with their digest.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::model::{ConnectionIds, SessionRow};

use super::super::FileEntry;
use super::super::rows_sum::RowsSum;
use super::super::salts::Salts;
use super::super::table::{BATCH_ROWS_MAX, by_parts, digest_rows, session_batch};

/// A new file: the rows of its input files, minus dropped rows, plus new rows.
#[derive(Debug)]
pub struct SessionsChange {
    pub inputs: Vec<FileEntry>,
    /// Each id has a row in one of the inputs.
    pub drop_ids: Arc<ConnectionIds>,
    pub dropped: RowsSum,
    pub batches: Vec<RecordBatch>,
    pub added: RowsSum,
}

impl SessionsChange {
    /// Sorts the added sessions by time and connection.
    pub fn new(
        inputs: Vec<FileEntry>,
        dropped: &[&SessionRow],
        added: &mut [&SessionRow],
        salts: &Salts,
    ) -> Result<Self, String> {
        fn key<'a>(row: &&'a SessionRow) -> (i64, &'a str) {
            (row.first_event_at.micros(), row.connection_id.as_str())
        }
        added.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        if let Some(pair) = added.windows(2).find(|pair| pair[0].connection_id == pair[1].connection_id) {
            return Err(format!("session {} occurs twice", pair[0].connection_id));
        }
        let drop_ids = Arc::new(dropped.iter().map(|row| row.connection_id.clone()).collect());
        let (_, dropped) = columns(dropped, salts)?;
        let (batches, added) = columns(added, salts)?;
        Ok(Self { inputs, drop_ids, dropped, batches, added })
    }

    pub fn rows(&self) -> u64 {
        RowsSum::of_files(&self.inputs).plus(self.added).less(self.dropped).rows
    }
}

/// Converts sessions to columns, in the given order.
fn columns(rows: &[&SessionRow], salts: &Salts) -> Result<(Vec<RecordBatch>, RowsSum), String> {
    let batches = by_parts(rows, BATCH_ROWS_MAX, |some| {
        let batch = session_batch(some.iter().copied())?;
        let sum = RowsSum::new(batch.num_rows() as u64, digest_rows(&batch, salts)?);
        Ok::<_, String>((batch, sum))
    })?;
    let (batches, sums): (Vec<RecordBatch>, Vec<RowsSum>) = batches.into_iter().unzip();
    Ok((batches, sums.into_iter().fold(RowsSum::default(), RowsSum::plus)))
}

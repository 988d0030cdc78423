//! The new rows of a session file as columns, with their digest.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::model::SessionRow;

use super::super::planned_file::MergedRows;
use super::super::rows_sum::RowsSum;
use super::super::salts::Salts;
use super::super::table::{BATCH_ROWS_MAX, by_parts, digest_rows, session_batch};

/// The new rows of a session file. Sorts the added sessions by time and connection.
pub fn merged_rows(dropped: &[&SessionRow], added: &mut [&SessionRow], salts: &Salts) -> Result<MergedRows, String> {
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
    Ok(MergedRows { batches, added, drop_ids, dropped })
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

//! The sort order of rows in files: by time, then by id, then by revision.

use arrow::array::{Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow::compute::take_record_batch;

use super::{column, column_of};

/// The columns that a batch is sorted by.
pub struct Order {
    /// Nanoseconds since the epoch; a quarantined event can have none.
    pub times: Int64Array,
    pub ids: StringArray,
    /// `None` if the rows have no revision.
    pub revisions: Option<Int32Array>,
}

impl Order {
    /// # Errors
    /// A sentence that names a missing column or a wrong type.
    pub fn of(batch: &RecordBatch) -> Result<Self, String> {
        let has = |name: &str| batch.column_by_name(name).is_some();
        // The rows of the inventory have no ids of this kind: their times alone order the files.
        let id = [column::EVENT_ID, column::CONNECTION_ID].into_iter().find(|id| has(id)).unwrap_or(column::TEAM_ID);
        let ids = column_of::<StringArray>(batch, id)?.clone();
        let revisions = has(column::REVISION).then(|| column_of::<Int32Array>(batch, column::REVISION).cloned());
        Ok(Self { times: times_of(batch)?, ids, revisions: revisions.transpose()? })
    }

    pub fn revision(&self, row: usize) -> i32 {
        self.revisions.as_ref().map_or(0, |revisions| revisions.value(row))
    }
}

/// Sorts a batch in the order of files. An erasure can change the ids of rows with equal times, and so their order.
pub fn sort_rows(batch: RecordBatch) -> Result<RecordBatch, String> {
    if batch.column_by_name(column::EVENT_TIME_NS).is_none() {
        return Ok(batch);
    }
    let order = Order::of(&batch)?;
    let key = |row: usize| {
        let time = order.times.is_valid(row).then(|| order.times.value(row));
        (time, order.ids.value(row), order.revision(row))
    };
    let mut rows: Vec<usize> = (0..batch.num_rows()).collect();
    rows.sort_by(|a, b| key(*a).cmp(&key(*b)));
    let rows = UInt64Array::from_iter_values(rows.into_iter().map(|row| row as u64));
    take_record_batch(&batch, &rows).map_err(|e| e.to_string())
}

/// The times of a batch's rows, in nanoseconds since the epoch.
pub fn times_of(batch: &RecordBatch) -> Result<Int64Array, String> {
    let has = |name: &str| batch.column_by_name(name).is_some();
    if has(column::EVENT_TIME_NS) {
        return column_of::<Int64Array>(batch, column::EVENT_TIME_NS).cloned();
    }
    let name = if has(column::FIRST_EVENT_AT) { column::FIRST_EVENT_AT } else { column::SEEN_AT };
    let micros = column_of::<TimestampMicrosecondArray>(batch, name)?;
    Ok(micros.iter().map(|at| at.map(|at| at.saturating_mul(1_000))).collect())
}

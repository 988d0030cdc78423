//! The sort order of rows in files: by time, then by id, then by revision.

use arrow::array::{Array, AsArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};

use super::column;

/// The columns that a batch is sorted by.
pub struct Order {
    /// Nanoseconds since the epoch; a quarantined event can have none.
    pub times: Int64Array,
    pub ids: StringArray,
    /// `None` if the rows have no revision.
    pub revisions: Option<Int32Array>,
}

impl Order {
    pub fn of(batch: &RecordBatch) -> Result<Self, String> {
        let text = |name: &str| {
            let found = batch.column_by_name(name).and_then(|c| c.as_string_opt::<i32>()).cloned();
            found.ok_or_else(|| format!("column {name} is missing or not text"))
        };
        let times = times_of(batch)?;
        if batch.column_by_name(column::EVENT_ID).is_none() {
            return Ok(Self { times, ids: text(column::CONNECTION_ID)?, revisions: None });
        }
        let revisions = batch.column_by_name(column::REVISION).map(|c| c.as_primitive_opt::<Int32Type>().cloned());
        let revisions = revisions.map(|found| found.ok_or("revision is not an integer")).transpose()?;
        Ok(Self { times, ids: text(column::EVENT_ID)?, revisions })
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
    if let Some(nanos) = batch.column_by_name(column::EVENT_TIME_NS) {
        return nanos.as_primitive_opt::<Int64Type>().cloned().ok_or_else(|| "event_time_ns: its type".to_owned());
    }
    let micros = batch.column_by_name(column::FIRST_EVENT_AT).or_else(|| batch.column_by_name(column::SEEN_AT));
    let micros = micros.and_then(|c| c.as_primitive_opt::<TimestampMicrosecondType>());
    let micros = micros.ok_or("the batch has none of the columns event_time_ns, first_event_at and seen_at")?;
    Ok(micros.iter().map(|at| at.map(|at| at.saturating_mul(1_000))).collect())
}

//! Converts rows to columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StringBuilder,
    TimestampMicrosecondArray,
};

use crate::model::{ErasedMark, EventRow, Instant, RejectRow, Stream};

use super::super::Dataset;
use super::schema_of;

/// The columns of every stream, before and after the stream's own columns.
const COMMON_COLUMNS: usize = 9 + 2;

/// Converts `rows` of one stream to columns. The slice must be short: a text column holds at most 2 GiB.
pub fn event_batch(stream: Stream, rows: &[EventRow]) -> Result<RecordBatch, String> {
    let mut own =
        (COMMON_COLUMNS..schema_of(stream.into()).fields().len()).map(|_| StringBuilder::new()).collect::<Vec<_>>();
    let (mut raw, mut revisions) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in rows {
        let bad = |what: String| format!("event {}: {what}", row.event_id);
        let text = std::str::from_utf8(&row.raw).map_err(|e| bad(format!("not UTF-8: {e}")))?;
        raw.push(row.served_digest.is_none().then_some(text));
        let revision = i32::try_from(row.revision);
        revisions.push(revision.map_err(|_| bad(format!("revision {} is too large", row.revision)))?);
        row.detail.with_texts(|texts| {
            if texts.len() != own.len() {
                return Err(bad(format!("not an event of {stream}")));
            }
            own.iter_mut().zip(texts).for_each(|(column, text)| column.append_option(*text));
            Ok(())
        })?;
    }
    let served = rows.iter().map(|row| row.served_digest.map(|digest| digest.to_string()));
    let mut columns: Vec<ArrayRef> = vec![
        texts(rows, |row| row.team_id.as_str()),
        texts(rows, |row| row.event_id.as_str()),
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.time.micros()))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.time.nanos()))),
        texts(rows, |row| row.event_type.as_str()),
        Arc::new(Int32Array::from(revisions)),
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.first_seen_at.micros()))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.redacted)))),
        Arc::new(StringArray::from(raw)),
    ];
    columns.extend(own.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
    columns.extend([Arc::new(StringArray::new_null(rows.len())) as ArrayRef, Arc::new(StringArray::from_iter(served))]);
    RecordBatch::try_new(schema_of(stream.into()), columns).map_err(|e| e.to_string())
}

/// The columns of quarantined events of any stream.
pub fn reject_batch(rows: &[RejectRow]) -> Result<RecordBatch, String> {
    let is_text = |r: &RejectRow| std::str::from_utf8(&r.raw).is_ok();
    let bytes = rows.iter().map(|r| (!is_text(r)).then_some(r.raw.as_ref()));
    let columns: Vec<ArrayRef> = vec![
        texts(rows, |r| r.team_id.as_str()),
        texts(rows, |r| r.stream.as_str()),
        texts(rows, |r| r.event_id.as_str()),
        Arc::new(TimestampMicrosecondArray::from_iter(rows.iter().map(|r| r.time.map(Instant::micros)))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.time.map(Instant::nanos)))),
        texts(rows, |r| &r.reason),
        texts(rows, |r| &r.detail),
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|r| r.first_seen_at.micros()))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|r| Some(r.redacted)))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|r| String::from_utf8_lossy(&r.raw)))),
        Arc::new(BinaryArray::from_iter(bytes)),
        erased(rows, |mark| &mark.orders),
        erased(rows, |mark| &mark.original),
    ];
    RecordBatch::try_new(schema_of(Dataset::Quarantine), columns).map_err(|e| e.to_string())
}

fn erased(rows: &[RejectRow], get: fn(&ErasedMark) -> &String) -> ArrayRef {
    Arc::new(StringArray::from_iter(rows.iter().map(|row| row.erased.as_ref().map(get))))
}

fn texts<R>(rows: &[R], get: impl Fn(&R) -> &str) -> ArrayRef {
    let bytes = rows.iter().map(|row| get(row).len()).sum();
    let mut column = StringBuilder::with_capacity(rows.len(), bytes);
    rows.iter().for_each(|row| column.append_value(get(row)));
    Arc::new(column.finish())
}

//! Rows to columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StringBuilder,
    TimestampMicrosecondArray,
};

use crate::model::{ConnectionTexts, Detail, EventRow, Instant, RejectRow, Stream};

use super::super::Dataset;
use super::schema_of;

/// The columns of `rows`, all of one stream. Short enough slices only: text columns hold at most 2 GiB.
///
/// # Errors
/// A sentence naming the event that does not fit the stream's columns, or is not UTF-8.
pub fn event_batch(stream: Stream, rows: &[EventRow]) -> Result<RecordBatch, String> {
    let mut raw = Vec::with_capacity(rows.len());
    for row in rows {
        raw.push(std::str::from_utf8(&row.raw).map_err(|e| format!("event {}: not UTF-8: {e}", row.event_id))?);
        let is_fit = matches!(
            (&row.detail, stream),
            (Detail::Activity { .. }, Stream::Activity)
                | (Detail::Connections(_), Stream::Connections)
                | (Detail::Billing { .. }, Stream::Billing)
        );
        if !is_fit {
            return Err(format!("event {}: not an event of {stream}", row.event_id));
        }
        if i32::try_from(row.revision).is_err() {
            return Err(format!("event {}: revision {} is too large", row.event_id, row.revision));
        }
    }
    let revision = |r: &EventRow| i32::try_from(r.revision).expect("BUG: checked above");
    let mut columns: Vec<ArrayRef> = vec![
        texts(rows, |r| r.team_id.as_str()),
        texts(rows, |r| r.event_id.as_str()),
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|r| r.time.micros()))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.time.nanos()))),
        texts(rows, |r| &r.event_type),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(revision))),
        Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|r| r.first_seen_at.micros()))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|r| Some(r.redacted)))),
        texts(&raw, |text| text),
    ];
    match stream {
        Stream::Activity => {
            columns.push(maybe_texts(rows, |r| match &r.detail {
                Detail::Activity { token_info, .. } => token_info.as_deref(),
                _ => None,
            }));
            columns.push(maybe_texts(rows, |r| match &r.detail {
                Detail::Activity { payload, .. } => payload.as_deref(),
                _ => None,
            }));
        }
        Stream::Billing => columns.push(maybe_texts(rows, |r| match &r.detail {
            Detail::Billing { payload } => payload.as_deref(),
            _ => None,
        })),
        Stream::Connections => columns.extend(connection_columns(rows)),
    }
    RecordBatch::try_new(schema_of(stream.into()), columns).map_err(|e| e.to_string())
}

fn connection_columns(rows: &[EventRow]) -> [ArrayRef; ConnectionTexts::COUNT] {
    std::array::from_fn(|column| {
        maybe_texts(rows, move |row| match &row.detail {
            Detail::Connections(texts) => texts.get(column),
            _ => None,
        })
    })
}

/// The columns of quarantined events of any stream.
///
/// # Errors
/// A sentence, should the columns not make a batch.
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
    ];
    RecordBatch::try_new(schema_of(Dataset::Quarantine), columns).map_err(|e| e.to_string())
}

fn texts<R>(rows: &[R], get: impl Fn(&R) -> &str) -> ArrayRef {
    let bytes = rows.iter().map(|row| get(row).len()).sum();
    let mut column = StringBuilder::with_capacity(rows.len(), bytes);
    rows.iter().for_each(|row| column.append_value(get(row)));
    Arc::new(column.finish())
}

fn maybe_texts<R>(rows: &[R], get: impl Fn(&R) -> Option<&str>) -> ArrayRef {
    let bytes = rows.iter().filter_map(&get).map(str::len).sum();
    let mut column = StringBuilder::with_capacity(rows.len(), bytes);
    rows.iter().for_each(|row| column.append_option(get(row)));
    Arc::new(column.finish())
}

//! Converts rows to columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBuilder, Int32Array, Int64Array, RecordBatch, StringArray,
    StringBuilder, TimestampMicrosecondArray,
};

use crate::model::{ErasedMark, EventRow, Instant, RejectRow, Stream};

use super::super::Dataset;
use super::schema_of;

/// Estimated bytes of a text; `raw` is longer.
const TEXT_BYTES: usize = 16;
/// The columns of every stream, before and after the stream's own columns.
const COMMON_COLUMNS: usize = 9 + ERASED_COLUMNS;
/// `erased` and `served_digest`.
const ERASED_COLUMNS: usize = 2;

/// Converts `rows` of one stream to columns. The slice must be short: a text column holds at most 2 GiB.
///
/// # Errors
/// A sentence that names an event that is not UTF-8 or does not fit the stream's columns.
pub fn event_batch(stream: Stream, rows: &[EventRow]) -> Result<RecordBatch, String> {
    let mut builder = EventBuilder::new(stream, rows.len(), rows.iter().map(|row| row.raw.len()).sum());
    rows.iter().try_for_each(|row| builder.add(row))?;
    builder.finish()
}

/// Builds the columns of one stream's events row by row.
struct EventBuilder {
    stream: Stream,
    team: StringBuilder,
    id: StringBuilder,
    /// Nanoseconds since the epoch.
    times: Vec<i64>,
    types: StringBuilder,
    revisions: Vec<i32>,
    /// Microseconds since the epoch.
    seen: Vec<i64>,
    redacted: BooleanBuilder,
    raw: StringBuilder,
    served: StringBuilder,
    /// The columns that only this stream has.
    texts: Vec<StringBuilder>,
}

impl EventBuilder {
    /// Reserves room for this many rows and bytes of text.
    fn new(stream: Stream, rows: usize, raw_bytes: usize) -> Self {
        let text = || StringBuilder::with_capacity(rows, rows * TEXT_BYTES);
        let own = schema_of(stream.into()).fields().len() - COMMON_COLUMNS;
        Self {
            stream,
            team: text(),
            id: text(),
            times: Vec::with_capacity(rows),
            types: text(),
            revisions: Vec::with_capacity(rows),
            seen: Vec::with_capacity(rows),
            redacted: BooleanBuilder::with_capacity(rows),
            raw: StringBuilder::with_capacity(rows, raw_bytes),
            served: StringBuilder::new(),
            texts: (0..own).map(|_| text()).collect(),
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A sentence that names the event if it does not fit the columns; then nothing is added.
    fn add(&mut self, row: &EventRow) -> Result<(), String> {
        let raw = std::str::from_utf8(&row.raw).map_err(|e| format!("event {}: not UTF-8: {e}", row.event_id))?;
        if row.detail.with_texts(|texts| texts.len()) != self.texts.len() {
            return Err(format!("event {}: not an event of {}", row.event_id, self.stream));
        }
        let revision = i32::try_from(row.revision)
            .map_err(|_| format!("event {}: revision {} is too large", row.event_id, row.revision))?;
        self.team.append_value(row.team_id.as_str());
        self.id.append_value(row.event_id.as_str());
        self.times.push(row.time.nanos());
        self.types.append_value(row.event_type.as_str());
        self.revisions.push(revision);
        self.seen.push(row.first_seen_at.micros());
        self.redacted.append_value(row.redacted);
        self.raw.append_option(row.served_digest.is_none().then_some(raw));
        self.served.append_option(row.served_digest.map(|digest| digest.to_string()));
        row.detail.with_texts(|texts| {
            for (column, text) in self.texts.iter_mut().zip(texts) {
                column.append_option(*text);
            }
        });
        Ok(())
    }

    /// The finished columns.
    ///
    /// # Errors
    /// A sentence if the columns make no batch.
    fn finish(mut self) -> Result<RecordBatch, String> {
        let micros = self.times.iter().map(|nanos| Instant::from_nanos(*nanos).micros());
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.team.finish()),
            Arc::new(self.id.finish()),
            Arc::new(TimestampMicrosecondArray::from_iter_values(micros)),
            Arc::new(Int64Array::from(self.times)),
            Arc::new(self.types.finish()),
            Arc::new(Int32Array::from(self.revisions)),
            Arc::new(TimestampMicrosecondArray::from(self.seen)),
            Arc::new(self.redacted.finish()),
            Arc::new(self.raw.finish()),
        ];
        columns.extend(self.texts.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
        let rows = columns[0].len();
        columns.extend([Arc::new(StringArray::new_null(rows)) as ArrayRef, Arc::new(self.served.finish())]);
        RecordBatch::try_new(schema_of(self.stream.into()), columns).map_err(|e| e.to_string())
    }
}

/// The columns of quarantined events of any stream.
///
/// # Errors
/// A sentence if the columns make no batch.
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

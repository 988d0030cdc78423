//! Converts rows to columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StringBuilder,
    TimestampMicrosecondArray,
};

use crate::model::{Dataset, Digest, ErasedMark, EventRow, Instant, RejectRow, Stream};

use super::super::salts::Salts;
use super::digest::{digest_new_rows, summed_batches};
use super::schema::own_columns;
use super::{BATCH_BYTES_MAX, BATCH_ROWS_MAX, schema_of};
use crate::archive::ledger::rows_sum::RowsSum;

/// The usual length of a text in the stream's own columns, to allocate the memory at once.
const TEXT_BYTES: usize = 16;

/// Converts rows of one stream to batches of bounded size, in order, and digests them, on several threads if the rows are many.
pub fn event_batches(stream: Stream, rows: &[EventRow], salts: &Salts) -> Result<(Vec<RecordBatch>, RowsSum), String> {
    let mut parts = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(batch_rows(rest));
        parts.push(part);
        rest = after;
    }
    summed_batches(&parts, 1, |part| {
        let batch = event_batch(stream, part[0])?;
        let texts: Vec<Digest> = part[0].iter().map(|row| row.raw.digest()).collect();
        let sum = digest_new_rows(&batch, &texts, salts)?;
        Ok((batch, sum))
    })
}

/// The number of `rows` in the next batch.
fn batch_rows(rows: &[EventRow]) -> usize {
    let mut bytes = 0;
    let fits = |row: &&EventRow| {
        let is_first = bytes == 0;
        bytes += row.raw.len().max(1);
        is_first || bytes <= BATCH_BYTES_MAX
    };
    rows.iter().take(BATCH_ROWS_MAX).take_while(fits).count()
}

/// Converts `rows` of one stream to columns. The slice must be short: a text column holds at most 2 GiB.
pub fn event_batch(stream: Stream, rows: &[EventRow]) -> Result<RecordBatch, String> {
    let builder = |rows| StringBuilder::with_capacity(rows, rows * TEXT_BYTES);
    let mut own: Vec<StringBuilder> = own_columns(stream.into()).iter().map(|_| builder(rows.len())).collect();
    let bytes = rows.iter().map(|row| row.raw.len()).sum();
    let mut raw = StringBuilder::with_capacity(rows.len(), bytes);
    let mut revisions = Vec::with_capacity(rows.len());
    for row in rows {
        let bad = |what: String| format!("event {}: {what}", row.event_id);
        let text = std::str::from_utf8(&row.raw).map_err(|e| bad(format!("not UTF-8: {e}")))?;
        raw.append_option(row.served_digest.is_none().then_some(text));
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
        Arc::new(raw.finish()),
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::super::tests::{event, now};
    use super::*;

    /// For events with texts of this size: the number of events in a batch.
    #[test]
    fn a_batch_is_bounded_and_holds_at_least_one_event() {
        let text = Bytes::from(vec![b' '; BATCH_BYTES_MAX + 1]);
        let row = |bytes: usize| EventRow { raw: text.slice(..bytes).into(), ..event("e", now()) };
        let half = BATCH_BYTES_MAX / 2;
        for (bytes, expected) in [
            (vec![], 0),
            (vec![1], 1),
            (vec![half, half, 1], 2),
            (vec![half, half + 1], 1),
            (vec![BATCH_BYTES_MAX + 1, 1], 1),
            (vec![0, BATCH_BYTES_MAX], 1),
            (vec![1; BATCH_ROWS_MAX + 1], BATCH_ROWS_MAX),
        ] {
            let rows: Vec<EventRow> = bytes.iter().map(|bytes| row(*bytes)).collect();
            let sizes: Vec<usize> = bytes.into_iter().take(3).collect();
            assert_eq!(batch_rows(&rows), expected, "{sizes:?}");
        }
    }
}

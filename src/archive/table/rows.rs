//! Converts columns back to rows.

use arrow::array::{
    Array, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use bytes::Bytes;

use crate::model::{ConnectionTexts, Detail, ErasedMark, EventRow, Instant, RejectRow, Stream};

use super::column::*;
use super::columns::{column_of, text_at};
use super::schema::own_columns;

/// The rows of a batch that has all columns of the stream. If only `raw` was not read, or is null, it is empty. `first_seen_at` loses
/// everything below a microsecond.
pub fn event_rows(stream: Stream, batch: &RecordBatch) -> Result<Vec<EventRow>, String> {
    let text = |name: &str| column_of::<StringArray>(batch, name);
    let (team, id, kind, served) = (text(TEAM_ID)?, text(EVENT_ID)?, text(EVENT_TYPE)?, text(SERVED_DIGEST)?);
    let raw = batch.column_by_name(RAW).map(|_| text(RAW)).transpose()?;
    let nanos: &Int64Array = column_of(batch, EVENT_TIME_NS)?;
    let revision: &Int32Array = column_of(batch, REVISION)?;
    let seen: &TimestampMicrosecondArray = column_of(batch, FIRST_SEEN_AT)?;
    let redacted: &BooleanArray = column_of(batch, REDACTED)?;
    let own = own_columns(stream.into()).iter().map(|name| text(name)).collect::<Result<Vec<_>, _>>()?;
    let detail = |at: usize| {
        let mut texts = [None; ConnectionTexts::COUNT];
        texts.iter_mut().zip(&own).for_each(|(text, column)| *text = text_at(column, at));
        Detail::new(stream, &texts[..own.len()]).expect("BUG: a text for each column of the stream")
    };
    let row = |at: usize| {
        Ok(EventRow {
            team_id: team.value(at).into(),
            event_id: id.value(at).into(),
            time: Instant::from_nanos(nanos.value(at)),
            event_type: kind.value(at).into(),
            revision: u32::try_from(revision.value(at)).map_err(|_| format!("revision {}", revision.value(at)))?,
            first_seen_at: Instant::from_micros(seen.value(at)),
            redacted: redacted.value(at),
            raw: Bytes::copy_from_slice(raw.map_or("", |raw| raw.value(at)).as_bytes()).into(),
            served_digest: match raw {
                Some(raw) if raw.is_null(at) => text_at(served, at).and_then(|digest| digest.parse().ok()),
                _ => None,
            },
            detail: detail(at),
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

pub fn reject_rows(batch: &RecordBatch) -> Result<Vec<RejectRow>, String> {
    let text = |name: &str| column_of::<StringArray>(batch, name);
    let (team, stream, id) = (text(TEAM_ID)?, text(STREAM)?, text(EVENT_ID)?);
    let (reason, detail, raw) = (text(REASON)?, text(DETAIL)?, text(RAW)?);
    let bytes: &BinaryArray = column_of(batch, RAW_BYTES)?;
    let nanos: &Int64Array = column_of(batch, EVENT_TIME_NS)?;
    let seen: &TimestampMicrosecondArray = column_of(batch, FIRST_SEEN_AT)?;
    let redacted: &BooleanArray = column_of(batch, REDACTED)?;
    let (orders, original) = (text(ERASED)?, text(SERVED_DIGEST)?);
    let row = |at: usize| {
        let served = if bytes.is_valid(at) { bytes.value(at) } else { raw.value(at).as_bytes() };
        Ok(RejectRow {
            team_id: team.value(at).into(),
            stream: stream.value(at).parse()?,
            event_id: id.value(at).into(),
            time: nanos.is_valid(at).then(|| Instant::from_nanos(nanos.value(at))),
            reason: reason.value(at).to_owned(),
            detail: detail.value(at).to_owned(),
            first_seen_at: Instant::from_micros(seen.value(at)),
            redacted: redacted.value(at),
            raw: Bytes::copy_from_slice(served),
            erased: owned(orders, at)
                .zip(owned(original, at))
                .map(|(orders, original)| ErasedMark { orders, original }),
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

fn owned(texts: &StringArray, at: usize) -> Option<String> {
    text_at(texts, at).map(str::to_owned)
}

//! Converts columns back to rows.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};
use bytes::Bytes;

use crate::model::{ConnectionTexts, Detail, ErasedMark, EventRow, Instant, RejectRow, Stream};

use super::column::*;

/// The rows of a batch that has all columns of the stream. If only `raw` was not read, or is null, it is empty. `first_seen_at` loses
/// everything below a microsecond.
pub fn event_rows(stream: Stream, batch: &RecordBatch) -> Result<Vec<EventRow>, String> {
    let team = Texts::of(batch, TEAM_ID)?;
    let id = Texts::of(batch, EVENT_ID)?;
    let kind = Texts::of(batch, EVENT_TYPE)?;
    let raw = batch.column_by_name(RAW).map(|_| Texts::of(batch, RAW)).transpose()?;
    let served = Texts::of(batch, SERVED_DIGEST)?;
    let nanos = column_of(batch, EVENT_TIME_NS)?.as_primitive_opt::<Int64Type>().ok_or("event_time_ns: its type")?;
    let revision = column_of(batch, REVISION)?.as_primitive_opt::<Int32Type>().ok_or("revision: its type")?;
    let seen = Seen::of(batch)?;
    let details = Details::of(stream, batch)?;
    let row = |at: usize| {
        Ok(EventRow {
            team_id: team.get(at).into(),
            event_id: id.get(at).into(),
            time: Instant::from_nanos(nanos.value(at)),
            event_type: kind.get(at).into(),
            revision: u32::try_from(revision.value(at)).map_err(|_| format!("revision {}", revision.value(at)))?,
            first_seen_at: seen.at(at),
            redacted: seen.redacted(at),
            raw: Bytes::copy_from_slice(raw.as_ref().map_or("", |raw| raw.get(at)).as_bytes()).into(),
            served_digest: match &raw {
                Some(raw) if raw.maybe(at).is_none() => served.maybe(at).and_then(|digest| digest.parse().ok()),
                _ => None,
            },
            detail: details.get(at),
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The rows of a quarantine batch.
pub fn reject_rows(batch: &RecordBatch) -> Result<Vec<RejectRow>, String> {
    let team = Texts::of(batch, TEAM_ID)?;
    let stream = Texts::of(batch, STREAM)?;
    let id = Texts::of(batch, EVENT_ID)?;
    let reason = Texts::of(batch, REASON)?;
    let detail = Texts::of(batch, DETAIL)?;
    let raw = Texts::of(batch, RAW)?;
    let bytes = column_of(batch, RAW_BYTES)?.as_binary_opt::<i32>().ok_or("raw_bytes: its type")?;
    let nanos = column_of(batch, EVENT_TIME_NS)?.as_primitive_opt::<Int64Type>().ok_or("event_time_ns: its type")?;
    let seen = Seen::of(batch)?;
    let (orders, original) = (Texts::of(batch, ERASED)?, Texts::of(batch, SERVED_DIGEST)?);
    let row = |at: usize| {
        let served = if bytes.is_valid(at) { bytes.value(at) } else { raw.get(at).as_bytes() };
        Ok(RejectRow {
            team_id: team.get(at).into(),
            stream: stream.get(at).parse()?,
            event_id: id.get(at).into(),
            time: nanos.is_valid(at).then(|| Instant::from_nanos(nanos.value(at))),
            reason: reason.get(at).to_owned(),
            detail: detail.get(at).to_owned(),
            first_seen_at: seen.at(at),
            redacted: seen.redacted(at),
            raw: Bytes::copy_from_slice(served),
            erased: orders.owned(at).zip(original.owned(at)).map(|(orders, original)| ErasedMark { orders, original }),
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

fn column_of<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, String> {
    batch.column_by_name(name).map(AsRef::as_ref).ok_or_else(|| format!("column {name} is missing"))
}

struct Texts<'a>(&'a arrow::array::StringArray);

impl<'a> Texts<'a> {
    fn of(batch: &'a RecordBatch, name: &str) -> Result<Self, String> {
        let column = column_of(batch, name)?.as_string_opt::<i32>();
        column.map(Self).ok_or_else(|| format!("column {name} is not text"))
    }

    fn get(&self, at: usize) -> &'a str {
        self.0.value(at)
    }

    fn maybe(&self, at: usize) -> Option<&'a str> {
        self.0.is_valid(at).then(|| self.0.value(at))
    }

    fn owned(&self, at: usize) -> Option<String> {
        self.maybe(at).map(str::to_owned)
    }
}

struct Seen<'a> {
    at: &'a arrow::array::TimestampMicrosecondArray,
    redacted: &'a arrow::array::BooleanArray,
}

impl<'a> Seen<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, String> {
        let at = column_of(batch, FIRST_SEEN_AT)?.as_primitive_opt::<TimestampMicrosecondType>();
        let redacted = column_of(batch, REDACTED)?.as_boolean_opt();
        Ok(Self { at: at.ok_or("first_seen_at: its type")?, redacted: redacted.ok_or("redacted: its type")? })
    }

    fn at(&self, at: usize) -> Instant {
        Instant::from_micros(self.at.value(at))
    }

    fn redacted(&self, at: usize) -> bool {
        self.redacted.value(at)
    }
}

enum Details<'a> {
    Activity { token_info: Texts<'a>, payload: Texts<'a> },
    Connections([Texts<'a>; ConnectionTexts::COUNT]),
    Billing { payload: Texts<'a> },
}

impl<'a> Details<'a> {
    fn of(stream: Stream, batch: &'a RecordBatch) -> Result<Self, String> {
        Ok(match stream {
            Stream::Activity => {
                Details::Activity { token_info: Texts::of(batch, TOKEN_INFO)?, payload: Texts::of(batch, PAYLOAD)? }
            }
            Stream::Billing => Details::Billing { payload: Texts::of(batch, PAYLOAD)? },
            Stream::Connections => {
                let columns: Result<Vec<_>, String> = CONNECTION.iter().map(|n| Texts::of(batch, n)).collect();
                let columns = columns?.try_into();
                Details::Connections(columns.ok().expect("BUG: as many as there are names"))
            }
        })
    }

    fn get(&self, at: usize) -> Detail {
        match self {
            Details::Activity { token_info, payload } => {
                Detail::Activity { token_info: token_info.owned(at), payload: payload.owned(at) }
            }
            Details::Billing { payload } => Detail::Billing { payload: payload.owned(at) },
            Details::Connections(columns) => {
                Detail::Connections(ConnectionTexts::new(columns.each_ref().map(|column| column.maybe(at))))
            }
        }
    }
}

//! Connection events for making sessions, directly from their columns: a row of strings for each event would take more time
//! than everything else.

use arrow::array::{
    AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::Int32Type;

use crate::model::{ConnectionEvent, Instant, Range, TeamId};

use super::column::{CONNECTION, EVENT_ID, EVENT_TIME_NS, EVENT_TYPE, FIRST_SEEN_AT, REVISION};
use super::{column_of, text_at};

/// Some archived connection events without their text. An event needs about 150 bytes of memory.
#[derive(Debug, Clone)]
pub struct ConnectionColumns {
    team: TeamId,
    /// The rows of the range; the columns can hold more.
    rows: Vec<usize>,
    ids: StringArray,
    connections: StringArray,
    times: Int64Array,
    revisions: Int32Array,
    seen: TimestampMicrosecondArray,
    types: Repeated,
    /// The columns of [`CONNECTION`] after the connection id, in that order.
    details: [Repeated; 9],
}

/// A text column with many equal values: its dictionary, and the texts in it.
#[derive(Debug, Clone)]
struct Repeated(DictionaryArray<Int32Type>, StringArray);

impl Repeated {
    fn of(batch: &RecordBatch, name: &str) -> Result<Self, String> {
        let column = column_of::<DictionaryArray<Int32Type>>(batch, name)?;
        let texts = column.values().as_string_opt::<i32>().ok_or_else(|| format!("column {name} is not text"))?;
        Ok(Self(column.clone(), texts.clone()))
    }

    fn get(&self, at: usize) -> Option<&str> {
        text_at(&self.1, self.0.key(at)?)
    }
}

impl ConnectionColumns {
    /// The columns to decode.
    pub fn names() -> Vec<&'static str> {
        [&[EVENT_ID, EVENT_TIME_NS, REVISION, FIRST_SEEN_AT, EVENT_TYPE], &CONNECTION[..]].concat()
    }

    /// The columns to decode as dictionaries.
    pub fn dictionaries() -> Vec<&'static str> {
        [&[EVENT_TYPE], &CONNECTION[1..]].concat()
    }

    /// The events of a batch whose time is in `range`.
    ///
    /// # Errors
    /// A sentence that names a missing column, a wrong type, or an invalid revision.
    pub fn of(team: &TeamId, batch: &RecordBatch, range: Range) -> Result<Self, String> {
        let times = column_of::<Int64Array>(batch, EVENT_TIME_NS)?;
        let revisions = column_of::<Int32Array>(batch, REVISION)?;
        if let Some(odd) = revisions.values().iter().find(|revision| **revision < 0) {
            return Err(format!("revision {odd}"));
        }
        let is_asked = |at: &usize| range.owns(Instant::from_nanos(times.value(*at)));
        let details = CONNECTION[1..].iter().map(|name| Repeated::of(batch, name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            team: team.clone(),
            rows: (0..batch.num_rows()).filter(is_asked).collect(),
            ids: column_of::<StringArray>(batch, EVENT_ID)?.clone(),
            connections: column_of::<StringArray>(batch, CONNECTION[0])?.clone(),
            times: times.clone(),
            types: Repeated::of(batch, EVENT_TYPE)?,
            revisions: revisions.clone(),
            seen: column_of::<TimestampMicrosecondArray>(batch, FIRST_SEEN_AT)?.clone(),
            details: details.try_into().expect("BUG: as many as there are names"),
        })
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The event at `place`, in the order of the file.
    pub fn get(&self, place: usize) -> ConnectionEvent<'_> {
        let at = self.rows[place];
        ConnectionEvent {
            team_id: &self.team,
            connection_id: text_at(&self.connections, at),
            event_id: self.ids.value(at),
            event_type: self.types.get(at).unwrap_or_default(),
            time: Instant::from_nanos(self.times.value(at)),
            revision: u32::try_from(self.revisions.value(at)).expect("BUG: checked when it was read"),
            first_seen_at: Instant::from_micros(self.seen.value(at)),
            details: std::array::from_fn(|detail| self.details[detail].get(at)),
            failure_reason: self.details[8].get(at),
        }
    }
}

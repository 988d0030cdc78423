//! Connection events for making sessions, directly from their columns: a row of strings for each event would take more time
//! than everything else.

use arrow::array::{Array, AsArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};

use crate::model::{ConnectionEvent, Instant, Range, TeamId};

use super::column::{CONNECTION, EVENT_ID, EVENT_TIME_NS, EVENT_TYPE, FIRST_SEEN_AT, REVISION};

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

/// A text column with many equal values.
#[derive(Debug, Clone)]
pub struct Repeated {
    keys: Int32Array,
    values: StringArray,
}

impl Repeated {
    /// `None` if the column has another type.
    pub fn of(column: &dyn Array) -> Option<Self> {
        let column = column.as_dictionary_opt::<Int32Type>()?;
        Some(Self { keys: column.keys().clone(), values: column.values().as_string_opt::<i32>()?.clone() })
    }

    pub fn get(&self, at: usize) -> Option<&str> {
        let key = self.keys.is_valid(at).then(|| usize::try_from(self.keys.value(at)).ok())??;
        self.values.is_valid(key).then(|| self.values.value(key))
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
    pub fn of(team: &TeamId, batch: &RecordBatch, range: Range) -> Result<Self, String> {
        let column = |name: &str| {
            batch.column_by_name(name).map(AsRef::as_ref).ok_or_else(|| format!("column {name} is missing"))
        };
        let typed = |name: &str| format!("column {name} has a wrong type");
        let text = |name: &str| column(name)?.as_string_opt::<i32>().cloned().ok_or_else(|| typed(name));
        let times = column(EVENT_TIME_NS)?.as_primitive_opt::<Int64Type>().ok_or_else(|| typed(EVENT_TIME_NS))?;
        let revisions = column(REVISION)?.as_primitive_opt::<Int32Type>().ok_or_else(|| typed(REVISION))?;
        let seen = column(FIRST_SEEN_AT)?.as_primitive_opt::<TimestampMicrosecondType>();
        if let Some(odd) = revisions.values().iter().find(|revision| **revision < 0) {
            return Err(format!("revision {odd}"));
        }
        let is_asked = |at: &usize| range.owns(Instant::from_nanos(times.value(*at)));
        let repeated = |name: &str| Repeated::of(column(name)?).ok_or_else(|| typed(name));
        let details = CONNECTION[1..].iter().map(|name| repeated(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            team: team.clone(),
            rows: (0..batch.num_rows()).filter(is_asked).collect(),
            ids: text(EVENT_ID)?,
            connections: text(CONNECTION[0])?,
            times: times.clone(),
            types: repeated(EVENT_TYPE)?,
            revisions: revisions.clone(),
            seen: seen.ok_or_else(|| typed(FIRST_SEEN_AT))?.clone(),
            details: details.try_into().expect("BUG: as many as there are names"),
        })
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The connection of the event at `place`.
    pub fn connection(&self, place: usize) -> Option<&str> {
        self.named(self.rows[place])
    }

    pub fn time(&self, place: usize) -> Instant {
        Instant::from_nanos(self.times.value(self.rows[place]))
    }

    /// The event at `place`, in the order of the file.
    pub fn get(&self, place: usize) -> ConnectionEvent<'_> {
        let at = self.rows[place];
        ConnectionEvent {
            team_id: &self.team,
            connection_id: self.named(at),
            event_id: self.ids.value(at),
            event_type: self.types.get(at).unwrap_or_default(),
            time: Instant::from_nanos(self.times.value(at)),
            revision: u32::try_from(self.revisions.value(at)).expect("BUG: checked when it was read"),
            first_seen_at: Instant::from_micros(self.seen.value(at)),
            details: std::array::from_fn(|detail| self.details[detail].get(at)),
            failure_reason: self.details[8].get(at),
        }
    }

    fn named(&self, at: usize) -> Option<&str> {
        self.connections.is_valid(at).then(|| self.connections.value(at))
    }
}

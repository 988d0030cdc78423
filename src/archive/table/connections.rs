//! Connection events as sessions are made of them, straight from their columns: a row of strings for each would take more
//! time than all else.

use arrow::array::{Array, AsArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Int32Type, Int64Type, TimestampMicrosecondType};

use crate::model::{ConnectionEvent, Instant, Range, TeamId};

use super::column::{CONNECTION, EVENT_ID, EVENT_TIME_NS, EVENT_TYPE, FIRST_SEEN_AT, REVISION};

/// Some archived events of connections, without their text. About 300 bytes of memory an event.
#[derive(Debug, Clone)]
pub struct ConnectionColumns {
    team: TeamId,
    /// The rows that were asked for; the columns may hold more.
    rows: Vec<usize>,
    ids: StringArray,
    times: Int64Array,
    types: StringArray,
    revisions: Int32Array,
    seen: TimestampMicrosecondArray,
    /// In the order of [`CONNECTION`].
    details: [StringArray; 10],
}

impl ConnectionColumns {
    /// The columns to decode.
    pub fn names() -> Vec<&'static str> {
        [&[EVENT_ID, EVENT_TIME_NS, EVENT_TYPE, REVISION, FIRST_SEEN_AT], &CONNECTION[..]].concat()
    }

    /// The events of a batch whose time lies in `range`.
    ///
    /// # Errors
    /// A sentence naming the column that is missing or of another type, or a revision that is none.
    pub fn of(team: &TeamId, batch: &RecordBatch, range: Range) -> Result<Self, String> {
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("column {name} is missing"));
        let typed = |name: &str| format!("column {name} is of another type");
        let text = |name: &str| column(name)?.as_string_opt::<i32>().cloned().ok_or_else(|| typed(name));
        let times = column(EVENT_TIME_NS)?.as_primitive_opt::<Int64Type>().ok_or_else(|| typed(EVENT_TIME_NS))?;
        let revisions = column(REVISION)?.as_primitive_opt::<Int32Type>().ok_or_else(|| typed(REVISION))?;
        let seen = column(FIRST_SEEN_AT)?.as_primitive_opt::<TimestampMicrosecondType>();
        if let Some(odd) = revisions.values().iter().find(|revision| **revision < 0) {
            return Err(format!("revision {odd}"));
        }
        let is_asked = |at: &usize| range.owns(Instant::from_nanos(times.value(*at)));
        let details = CONNECTION.iter().map(|name| text(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            team: team.clone(),
            rows: (0..batch.num_rows()).filter(is_asked).collect(),
            ids: text(EVENT_ID)?,
            times: times.clone(),
            types: text(EVENT_TYPE)?,
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

    /// The connection that the event at `place` names.
    pub fn connection(&self, place: usize) -> Option<&str> {
        maybe(&self.details[0], self.rows[place])
    }

    pub fn time(&self, place: usize) -> Instant {
        Instant::from_nanos(self.times.value(self.rows[place]))
    }

    /// The event at `place`, in the order of the file.
    pub fn get(&self, place: usize) -> ConnectionEvent<'_> {
        let at = self.rows[place];
        ConnectionEvent {
            team_id: &self.team,
            connection_id: maybe(&self.details[0], at),
            event_id: self.ids.value(at),
            event_type: self.types.value(at),
            time: Instant::from_nanos(self.times.value(at)),
            revision: u32::try_from(self.revisions.value(at)).expect("BUG: checked when it was read"),
            first_seen_at: Instant::from_nanos(self.seen.value(at).saturating_mul(1_000)),
            details: std::array::from_fn(|detail| maybe(&self.details[detail + 1], at)),
            failure_reason: maybe(&self.details[9], at),
        }
    }
}

fn maybe(texts: &StringArray, at: usize) -> Option<&str> {
    texts.is_valid(at).then(|| texts.value(at))
}

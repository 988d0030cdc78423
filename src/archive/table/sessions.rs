//! Converts sessions to columns and back.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray};

use crate::model::{Dataset, Instant, SESSION_DETAILS, SessionOutcome, SessionRow, SessionTexts};

use super::column::{
    CONFLICTS, CONNECTION_ID, DURATION_MS, EVENT_COUNT, FAILED_ATTEMPTS, FAILURE_REASONS, OUTCOME, TEAM_ID, TIMES,
};
use super::{column_of, schema_of, text_at};

pub fn session_batch<'a>(rows: impl Iterator<Item = &'a SessionRow> + Clone) -> Result<RecordBatch, String> {
    let times = |get: fn(&SessionRow) -> Option<Instant>| -> ArrayRef {
        let micros = rows.clone().map(|row| get(row).map(Instant::micros));
        Arc::new(TimestampMicrosecondArray::from_iter(micros))
    };
    let maybe =
        |get: fn(&SessionRow) -> Option<&str>| -> ArrayRef { Arc::new(StringArray::from_iter(rows.clone().map(get))) };
    let texts =
        |get: fn(&SessionRow) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.clone().map(get))) };
    let numbers =
        |get: fn(&SessionRow) -> Option<i64>| -> ArrayRef { Arc::new(Int64Array::from_iter(rows.clone().map(get))) };
    let mut columns = vec![
        texts(|row| row.team_id.as_str()),
        texts(|row| row.connection_id.as_str()),
        times(|row| row.requested_at),
        times(|row| row.established_at),
        times(|row| row.authenticated_at),
        times(|row| row.closed_at),
        times(|row| Some(row.first_event_at)),
        times(|row| Some(row.last_event_at)),
        numbers(|row| row.duration_ms),
        texts(|row| row.outcome.as_str()),
        numbers(|row| Some(row.failed_attempts)),
        maybe(|row| row.failure_reasons.as_deref()),
    ];
    let mut details = SESSION_DETAILS.map(|_| StringBuilder::new());
    for row in rows.clone() {
        details.iter_mut().zip(row.details.all()).for_each(|(column, text)| column.append_option(text));
    }
    columns.extend(details.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef));
    columns.extend([numbers(|row| Some(row.event_count)), maybe(|row| row.conflicts.as_deref())]);
    RecordBatch::try_new(schema_of(Dataset::Sessions), columns).map_err(|e| e.to_string())
}

/// The sessions of a batch that has all columns. Times lose everything below a microsecond.
pub fn session_rows(batch: &RecordBatch) -> Result<Vec<SessionRow>, String> {
    let text = |name: &str| column_of::<StringArray>(batch, name);
    let number = |name: &str| column_of::<Int64Array>(batch, name);
    let time = |name: &&str| column_of::<TimestampMicrosecondArray>(batch, name);
    let (team, connection, outcome) = (text(TEAM_ID)?, text(CONNECTION_ID)?, text(OUTCOME)?);
    let (reasons, conflicts) = (text(FAILURE_REASONS)?, text(CONFLICTS)?);
    let (duration, failed, count) = (number(DURATION_MS)?, number(FAILED_ATTEMPTS)?, number(EVENT_COUNT)?);
    let times = TIMES.iter().map(time).collect::<Result<Vec<_>, _>>()?;
    let details = SESSION_DETAILS.iter().map(|name| text(name)).collect::<Result<Vec<_>, _>>()?;
    let owned = |texts: &StringArray, at: usize| text_at(texts, at).map(str::to_owned);
    let row = |at: usize| {
        let moment = |place: usize| times[place].is_valid(at).then(|| Instant::from_micros(times[place].value(at)));
        let named = SessionOutcome::ALL.into_iter().find(|known| known.as_str() == outcome.value(at));
        Ok(SessionRow {
            team_id: team.value(at).into(),
            connection_id: connection.value(at).into(),
            requested_at: moment(0),
            established_at: moment(1),
            authenticated_at: moment(2),
            closed_at: moment(3),
            first_event_at: Instant::from_micros(times[4].value(at)),
            last_event_at: Instant::from_micros(times[5].value(at)),
            duration_ms: duration.is_valid(at).then(|| duration.value(at)),
            outcome: named.ok_or_else(|| format!("unknown outcome {:?}", outcome.value(at)))?,
            failed_attempts: failed.value(at),
            failure_reasons: owned(reasons, at),
            details: SessionTexts::new(std::array::from_fn(|place| text_at(details[place], at))),
            event_count: count.value(at),
            conflicts: owned(conflicts, at),
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

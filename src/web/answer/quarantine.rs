//! The quarantine: events that do not fit the schema, kept as the service sent them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{Instant, Stream, TeamId};
use crate::report::{Engine, Needs, ParamValue, View};

use super::super::AppState;
use super::super::input::{Input, position};
use super::super::problem::Problem;
use super::sessions::Found;
use super::{TIME_MAX, maybe_moment, moment};

pub const PARAMETERS: [&str; 5] = ["team", "stream", "reason", "limit", "after"];
/// Maximum number of shown characters of an event.
pub const RAW_CHARS_MAX: usize = 20_000;

/// One quarantined event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Quarantined {
    pub team_id: String,
    pub stream: String,
    pub event_id: String,
    #[serde(deserialize_with = "maybe_moment")]
    pub event_time: Option<Instant>,
    pub reason: String,
    pub detail: Option<String>,
    #[serde(deserialize_with = "moment")]
    pub first_seen_at: Instant,
    pub redacted: bool,
    /// The served text; only its beginning if it is long.
    pub raw: Option<String>,
    pub raw_chars: Option<u64>,
}

/// The key of a page's last row: the time of its first sight, its team, stream and id.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PageKey(i64, String, String, String);

/// The quarantined events that `input` asks for, newest first.
///
/// # Errors
/// When `input` is invalid; the errors of the query.
pub async fn find(
    state: &AppState,
    input: &Input,
    teams: Vec<TeamId>,
    limit: usize,
) -> Result<Found<Quarantined>, Problem> {
    let (mut conditions, mut values) = (vec!["true"], BTreeMap::new());
    if let Some(stream) = input.parsed::<Stream>("stream")? {
        conditions.push("stream = $stream");
        values.insert("stream", ParamValue::Text(stream.to_string()));
    }
    if let Some(reason) = input.get("reason") {
        conditions.push("reason = $reason");
        values.insert("reason", ParamValue::Text(reason.to_owned()));
    }
    if let Some(PageKey(micros, team, stream, id)) = position(input)? {
        conditions.push("(epoch_us(first_seen_at), team_id, stream, event_id) < ($micros, $team, $last_stream, $id)");
        values.insert("micros", ParamValue::Integer(micros));
        values.insert("team", ParamValue::Text(team));
        values.insert("last_stream", ParamValue::Text(stream));
        values.insert("id", ParamValue::Text(id));
    }
    let sql = format!(
        "SELECT team_id, stream, event_id, epoch_us(event_time) AS event_time, reason, detail, \
         epoch_us(first_seen_at) AS first_seen_at, redacted, left(raw, {RAW_CHARS_MAX}) AS raw, length(raw) AS raw_chars \
         FROM quarantine WHERE {} ORDER BY first_seen_at DESC, team_id DESC, stream DESC, event_id DESC LIMIT {}",
        conditions.join(" AND "),
        limit + 1
    );
    let ask = move |engine: &mut Engine| engine.rows::<Quarantined>(&sql, &values);
    let rows = state.queries.ask(teams, Needs::views(&[View::Quarantine]), TIME_MAX, ask).await?;
    let key = |row: &Quarantined| {
        PageKey(row.first_seen_at.micros(), row.team_id.clone(), row.stream.clone(), row.event_id.clone())
    };
    Ok(Found::page(rows, limit, key))
}

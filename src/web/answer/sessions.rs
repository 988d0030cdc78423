//! A search for sessions, and one session with all its events.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{Instant, Range, TeamId};
use crate::report::{COMPUTERS, Engine, Needs, ParamValue, View, printable};

use super::super::AppState;
use super::super::input::{Input, cursor, position};
use super::super::problem::Problem;
use super::{TIME_MAX, literal, maybe_moment, moment};

pub const OUTCOMES: [&str; 5] = ["ended", "open", "auth_failed", "requested_only", "closed_only"];
/// The parameters of a search.
pub const PARAMETERS: [&str; 10] =
    ["team", "from", "to", "tz", "user", "computer", "address", "outcome", "limit", "after"];
/// Maximum number of shown events of a session.
pub const EVENTS_MAX: usize = 500;
/// A day's page also finds sessions that began up to this many days earlier.
const BEGUN_BEFORE_DAYS: u64 = 31;
/// Maximum number of sessions that a day's page draws.
pub const DAY_MAX: usize = 2_000;

/// One session. Times are UTC, to the microsecond.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    pub team_id: String,
    pub connection_id: String,
    #[serde(deserialize_with = "maybe_moment")]
    pub requested_at: Option<Instant>,
    #[serde(deserialize_with = "maybe_moment")]
    pub established_at: Option<Instant>,
    #[serde(deserialize_with = "maybe_moment")]
    pub authenticated_at: Option<Instant>,
    #[serde(deserialize_with = "maybe_moment")]
    pub closed_at: Option<Instant>,
    #[serde(deserialize_with = "moment")]
    pub first_event_at: Instant,
    #[serde(deserialize_with = "moment")]
    pub last_event_at: Instant,
    pub duration_ms: Option<i64>,
    pub outcome: String,
    pub failed_attempts: u64,
    pub failure_reasons: Option<String>,
    pub device_id: Option<String>,
    pub computer_host_name: Option<String>,
    pub tunnel_id: Option<String>,
    pub source_type: Option<String>,
    pub peer_email: Option<String>,
    pub peer_ip: Option<String>,
    pub direct_ip: Option<String>,
    pub local_user_name: Option<String>,
    pub event_count: u64,
    pub conflicts: Option<String>,
}

/// One event of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    pub event_id: String,
    #[serde(deserialize_with = "moment")]
    pub event_time: Instant,
    pub event_time_ns: i64,
    pub event_type: String,
    pub revision: i32,
    #[serde(deserialize_with = "moment")]
    pub first_seen_at: Instant,
    pub redacted: bool,
    /// The event's JSON text, exactly as served; `None` if the archive did not keep it.
    pub raw: Option<String>,
}

/// A page of a list, and the key of the next page.
#[derive(Debug, Clone, Serialize)]
pub struct Found<T> {
    pub rows: Vec<T>,
    /// The value of `after` for the next page; `None` on the last page.
    pub next: Option<String>,
}

impl<T> Found<T> {
    /// The first `limit` of the rows. If there are more, `key` gives the key of the next page from the last row.
    pub fn page<K: Serialize>(mut rows: Vec<T>, limit: usize, key: impl FnOnce(&T) -> K) -> Self {
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(|last| cursor(&key(last)));
        Self { rows, next }
    }
}

/// The conditions of a search.
#[derive(Debug, Clone)]
pub struct Search {
    pub teams: Vec<TeamId>,
    /// The half-open period of a session's first event.
    pub period: Range,
    conditions: Vec<&'static str>,
    values: BTreeMap<&'static str, ParamValue>,
}

/// The key of a page's last row: the time of its first event, its connection and team.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PageKey(i64, String, String);

impl Search {
    /// The conditions in `input`.
    pub fn of(input: &Input, teams: Vec<TeamId>, period: Range) -> Result<Self, Problem> {
        let mut search = Self { teams, period, conditions: Vec::new(), values: BTreeMap::new() };
        let folded = |name: &str| input.get(name).map(str::to_lowercase);
        if let Some(user) = folded("user") {
            let condition = "(contains(lower(peer_email), $user) OR contains(lower(local_user_name), $user))";
            search.narrow(condition, "user", user);
        }
        if let Some(computer) = folded("computer") {
            let condition = "(contains(lower(computer_host_name), $computer) OR lower(device_id) = $computer \
                OR (team_id, device_id) IN (SELECT (team_id, device_id) FROM inventory_computers \
                WHERE contains(lower(name), $computer)))";
            search.narrow(condition, "computer", computer);
        }
        if let Some(address) = folded("address") {
            let condition = "(starts_with(lower(peer_ip), $address) OR starts_with(lower(direct_ip), $address))";
            search.narrow(condition, "address", address);
        }
        if let Some(outcome) = input.get("outcome") {
            if !OUTCOMES.contains(&outcome) {
                return Err(Problem::bad(format!("outcome: expected one of {}", OUTCOMES.join(", "))));
            }
            search.narrow("outcome = $outcome", "outcome", outcome.to_owned());
        }
        Ok(search)
    }

    fn narrow(&mut self, condition: &'static str, name: &'static str, value: String) {
        self.conditions.push(condition);
        self.values.insert(name, ParamValue::Text(value));
    }

    /// Whether the search has a condition besides the period.
    pub fn is_narrow(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// The sessions, newest first, from the position in `input`.
    pub async fn find(&self, state: &AppState, input: &Input, limit: usize) -> Result<Found<Session>, Problem> {
        let last: Option<PageKey> = position(input)?;
        let mut values = self.values.clone();
        let mut conditions: Vec<String> = self.conditions.iter().map(|&condition| condition.to_owned()).collect();
        let (from, to) = (literal(self.period.start), literal(self.period.end));
        conditions.push(format!("first_event_at >= {from} AND first_event_at < {to}"));
        if let Some(PageKey(micros, connection, team)) = last {
            let at = format!("make_timestamp({micros})");
            conditions.push(format!(
                "first_event_at <= {at} AND (first_event_at < {at} OR (connection_id, team_id) < ($connection, $team))"
            ));
            values.insert("connection", ParamValue::Text(connection));
            values.insert("team", ParamValue::Text(team));
        }
        let sql = select(&conditions, "first_event_at DESC, connection_id DESC, team_id DESC", limit + 1);
        let ask = move |engine: &mut Engine| engine.rows::<Session>(&sql, &values);
        let needs = Needs::views(&[View::Sessions, COMPUTERS]).within(self.period);
        let rows = state.queries.ask(self.teams.clone(), needs, TIME_MAX, ask).await?;
        let key = |row: &Session| PageKey(row.first_event_at.micros(), row.connection_id.clone(), row.team_id.clone());
        Ok(Found::page(rows, limit, key))
    }

    /// The sessions that were open at some time in the period, sorted by their start; at most [`DAY_MAX`] and one more.
    pub async fn running_sessions(&self, state: &AppState) -> Result<Vec<Session>, Problem> {
        let Range { start, end } = self.period;
        let since = start.minus(Duration::from_secs(BEGUN_BEFORE_DAYS * 86_400));
        let mut conditions: Vec<String> = self.conditions.iter().map(|&condition| condition.to_owned()).collect();
        conditions.push(format!(
            "first_event_at >= {} AND first_event_at < {} AND coalesce(closed_at, last_event_at) >= {}",
            literal(since),
            literal(end),
            literal(start)
        ));
        let sql = select(&conditions, "first_event_at, connection_id, team_id", DAY_MAX + 1);
        let values = self.values.clone();
        let needs = Needs::views(&[View::Sessions, COMPUTERS]).within(Range { start: since, end });
        state.queries.ask(self.teams.clone(), needs, TIME_MAX, move |engine| engine.rows(&sql, &values)).await
    }
}

/// The start of the newest session in the archive.
pub async fn newest(state: &AppState, teams: Vec<TeamId>) -> Result<Option<Instant>, Problem> {
    #[derive(Deserialize)]
    struct Newest {
        #[serde(deserialize_with = "maybe_moment")]
        at: Option<Instant>,
    }
    let sql = "SELECT epoch_us(max(first_event_at)) AS at FROM sessions";
    let needs = Needs::views(&[View::Sessions]);
    let ask = move |engine: &mut Engine| engine.rows::<Newest>(sql, &BTreeMap::new());
    let rows = state.queries.ask(teams, needs, TIME_MAX, ask).await?;
    Ok(rows.into_iter().find_map(|row| row.at))
}

/// The session with the `id` in `input`, and its events in time order; at most [`EVENTS_MAX`] events.
///
/// # Errors
/// When the session does not exist, or two teams have one with this id; the errors of the query.
pub async fn session(state: &AppState, teams: Vec<TeamId>, input: &Input) -> Result<(Session, Vec<Event>), Problem> {
    let id = input.get("id").ok_or_else(|| Problem::bad("id: the parameter is missing: give a connection id"))?;
    let values = BTreeMap::from([("connection", ParamValue::Text(id.to_owned()))]);
    let sql = select(&["connection_id = $connection".to_owned()], "team_id", 2);
    let (theirs, needs) = (values.clone(), Needs::views(&[View::Sessions]));
    let ask = move |engine: &mut Engine| engine.rows::<Session>(&sql, &theirs);
    let found = state.queries.ask(teams.clone(), needs, TIME_MAX, ask).await?;
    if let [one, two] = found.as_slice() {
        let (one, two) = (printable(&one.team_id), printable(&two.team_id));
        return Err(Problem::bad(format!("id: teams {one} and {two} have sessions with this id: give the team too")));
    }
    let missing = || Problem::missing("the archive has no session with this id");
    let session = found.into_iter().next().ok_or_else(missing)?;
    let events = events(state, teams, &session, values).await?;
    Ok((session, events))
}

async fn events(
    state: &AppState,
    teams: Vec<TeamId>,
    session: &Session,
    mut values: BTreeMap<&'static str, ParamValue>,
) -> Result<Vec<Event>, Problem> {
    values.insert("team", ParamValue::Text(session.team_id.clone()));
    let (first, last) = (literal(session.first_event_at), literal(session.last_event_at));
    let sql = format!(
        "SELECT event_id, epoch_us(event_time) AS event_time, event_time_ns, event_type, revision, \
         epoch_us(first_seen_at) AS first_seen_at, redacted, raw FROM connections \
         WHERE connection_id = $connection AND team_id = $team AND event_time BETWEEN {first} AND {last} \
         ORDER BY event_time_ns, event_id, revision LIMIT {EVENTS_MAX}"
    );
    let period = Range { start: session.first_event_at, end: session.last_event_at.plus(Duration::from_secs(1)) };
    let needs = Needs::views(&[View::Connections]).within(period);
    state.queries.ask(teams, needs, TIME_MAX, move |engine| engine.rows(&sql, &values)).await
}

fn select(conditions: &[String], order: &str, limit: usize) -> String {
    format!(
        "SELECT team_id, connection_id, epoch_us(requested_at) AS requested_at, epoch_us(established_at) AS established_at, \
         epoch_us(authenticated_at) AS authenticated_at, epoch_us(closed_at) AS closed_at, \
         epoch_us(first_event_at) AS first_event_at, epoch_us(last_event_at) AS last_event_at, duration_ms, outcome, \
         failed_attempts, failure_reasons, device_id, computer_host_name, tunnel_id, source_type, peer_email, peer_ip, \
         direct_ip, local_user_name, event_count, conflicts FROM sessions WHERE {} ORDER BY {order} LIMIT {limit}",
        conditions.join(" AND ")
    )
}

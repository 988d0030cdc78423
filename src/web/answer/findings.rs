//! Findings, newest first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{Instant, Stream, TeamId};
use crate::report::{Engine, Needs, ParamValue, View};

use super::super::AppState;
use super::super::input::{Input, position};
use super::super::problem::Problem;
use super::sessions::Found;
use super::{TIME_MAX, maybe_moment, moment};

pub const PARAMETERS: [&str; 6] = ["team", "kind", "stream", "seq", "limit", "after"];

/// One finding. A missing `from_time` or `to_time` is unknown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindingView {
    pub team_id: String,
    pub stream: Option<String>,
    pub kind: String,
    pub subject: String,
    #[serde(deserialize_with = "maybe_moment")]
    pub from_time: Option<Instant>,
    #[serde(deserialize_with = "maybe_moment")]
    pub to_time: Option<Instant>,
    pub reason: String,
    pub count: u64,
    #[serde(deserialize_with = "moment")]
    pub found_at: Instant,
    /// The ledger line that records the finding.
    pub ledger_seq: u64,
    #[serde(skip_serializing)]
    nth: u64,
}

/// The key of a page's last row: the time of the finding, its team, and its number in the team.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct PageKey(i64, String, u64);

/// The findings that `input` asks for.
///
/// # Errors
/// When `input` is invalid; the errors of the query.
pub async fn find(
    state: &AppState,
    input: &Input,
    teams: Vec<TeamId>,
    limit: usize,
) -> Result<Found<FindingView>, Problem> {
    let (mut conditions, mut values) = (vec!["true"], BTreeMap::new());
    if let Some(kind) = input.get("kind") {
        conditions.push("kind = $kind");
        values.insert("kind", ParamValue::Text(kind.to_owned()));
    }
    if let Some(stream) = input.parsed::<Stream>("stream")? {
        conditions.push("stream = $stream");
        values.insert("stream", ParamValue::Text(stream.to_string()));
    }
    if let Some(seq) = input.number("seq")? {
        conditions.push("ledger_seq = $seq");
        values.insert("seq", ParamValue::Integer(i64::try_from(seq).unwrap_or(i64::MAX)));
    }
    if let Some(PageKey(micros, team, nth)) = position(input)? {
        conditions.push("(epoch_us(found_at), team_id, nth) < ($micros, $team, $nth)");
        values.insert("micros", ParamValue::Integer(micros));
        values.insert("team", ParamValue::Text(team));
        values.insert("nth", ParamValue::Integer(i64::try_from(nth).unwrap_or(i64::MAX)));
    }
    // Findings have no key of their own, so each team's findings are numbered in the order of the ledger.
    let sql = format!(
        "WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY team_id ORDER BY ledger_seq, kind, stream, subject, \
         from_time, to_time, reason) AS nth FROM findings) \
         SELECT team_id, stream, kind, subject, epoch_us(from_time) AS from_time, epoch_us(to_time) AS to_time, reason, \
         count, epoch_us(found_at) AS found_at, ledger_seq, nth FROM numbered WHERE {} \
         ORDER BY found_at DESC, team_id DESC, nth DESC LIMIT {}",
        conditions.join(" AND "),
        limit + 1
    );
    let ask = move |engine: &mut Engine| engine.rows::<FindingView>(&sql, &values);
    let rows = state.queries.ask(teams, Needs::views(&[View::Findings]), TIME_MAX, ask).await?;
    Ok(Found::page(rows, limit, |row| PageKey(row.found_at.micros(), row.team_id.clone(), row.nth)))
}

/// The kinds of findings in the archive, and their numbers.
///
/// # Errors
/// The errors of the query.
pub async fn kinds(state: &AppState, teams: Vec<TeamId>) -> Result<Vec<(String, u64)>, Problem> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
        n: u64,
    }
    let sql = "SELECT kind, count(*) AS n FROM findings GROUP BY kind ORDER BY kind";
    let ask = move |engine: &mut Engine| engine.rows::<Kind>(sql, &BTreeMap::new());
    let rows = state.queries.ask(teams, Needs::views(&[View::Findings]), TIME_MAX, ask).await?;
    Ok(rows.into_iter().map(|row| (row.kind, row.n)).collect())
}

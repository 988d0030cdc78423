//! API endpoints that query the archive.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Path, State};
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::report::{ParamDefault, Report, SeverityRule, Zone};

use super::super::AppState;
use super::super::answer::reports::{self, Question, catalog, check_parameters};
use super::super::answer::{
    asked_teams, findings as found, period, quarantine as kept, sessions as search, sql as asked,
};
use super::super::input::Input;
use super::super::page::visitor;
use super::super::problem::Problem;
use super::{Answer, ROWS, ROWS_MAX, answered};

/// Maximum number of rows of a report.
const REPORT_ROWS_MAX: usize = 100_000;

/// Sessions, newest first.
pub async fn sessions(State(state): State<Arc<AppState>>, input: Input) -> Answer {
    input.only(&search::PARAMETERS)?;
    let zone = input.parsed("tz")?.unwrap_or_else(Zone::utc);
    let period = period(&input, state.clock.now(), &zone)?;
    let (_, teams) = asked_teams(&state, &input).await?;
    let limit = input.limit(ROWS, ROWS_MAX)?;
    let found = search::Search::of(&input, teams, period)?.find(&state, &input, limit).await?;
    answered(&json!({
        "from": period.start,
        "to": period.end,
        "sessions": found.rows,
        "next": found.next,
    }))
}

/// One session with its events.
pub async fn session(State(state): State<Arc<AppState>>, input: Input) -> Answer {
    input.only(&["team", "id"])?;
    let (_, teams) = asked_teams(&state, &input).await?;
    let (session, events) = search::session(&state, teams, &input).await?;
    let truncated = (events.len() as u64) < session.event_count;
    answered(&json!({"session": session, "events": events, "truncated": truncated}))
}

/// Findings, newest first.
pub async fn findings(State(state): State<Arc<AppState>>, input: Input) -> Answer {
    input.only(&found::PARAMETERS)?;
    let limit = input.limit(ROWS, ROWS_MAX)?;
    let (_, teams) = asked_teams(&state, &input).await?;
    let part = found::find(&state, &input, teams, limit).await?;
    answered(&json!({"findings": part.rows, "next": part.next}))
}

/// Quarantined events, newest first.
pub async fn quarantine(State(state): State<Arc<AppState>>, input: Input) -> Answer {
    input.only(&kept::PARAMETERS)?;
    let limit = input.limit(ROWS, ROWS_MAX)?;
    let (_, teams) = asked_teams(&state, &input).await?;
    let part = kept::find(&state, &input, teams, limit).await?;
    answered(&json!({"quarantine": part.rows, "next": part.next}))
}

/// The list of reports with their parameters.
pub async fn reports(State(state): State<Arc<AppState>>, input: Input) -> Answer {
    input.only(&[])?;
    let catalog = catalog(&state).await?;
    let listed: Vec<Value> = catalog.reports().iter().map(described).collect();
    let faults: Vec<String> = catalog.faults().iter().map(ToString::to_string).collect();
    answered(&json!({"reports": listed, "faults": faults}))
}

fn described(report: &Report) -> Value {
    let params = report.params.iter().map(|param| {
        let (required, default) = match &param.default {
            ParamDefault::Required => (true, None),
            ParamDefault::Null => (false, None),
            ParamDefault::Text(text) => (false, Some(text)),
        };
        let (name, kind, about) = (&param.name, param.kind.as_str(), &param.about);
        let ((min, max), choices) = (param.allowed.ends(), param.allowed.choices());
        json!({
            "name": name, "type": kind, "required": required, "default": default, "min": min, "max": max,
            "choices": choices, "about": about,
        })
    });
    json!({
        "id": report.id,
        "name": report.name,
        "title": report.title,
        "question": report.question,
        "controls": report.controls,
        "params": params.collect::<Vec<_>>(),
        "severity": report.severity.map(SeverityRule::as_str),
        "notes": report.notes,
    })
}

/// One report over a period.
pub async fn report(State(state): State<Arc<AppState>>, Path(name): Path<String>, input: Input) -> Answer {
    check_parameters(&input)?;
    let limit = input.limit(reports::JSON_ROWS, REPORT_ROWS_MAX)?;
    let report = catalog(&state).await?.find(&name)?.clone();
    let zone = input.parsed("tz")?.unwrap_or_else(Zone::utc);
    let question = Question::of(&state, report, &input, zone).await?;
    answered(&question.rows(&state, limit).await?)
}

/// The text of a query.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    query: String,
    team: Option<String>,
}

/// The rows of one SELECT, if the configuration allows SQL.
pub async fn sql(
    State(state): State<Arc<AppState>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    input: Input,
    body: String,
) -> Answer {
    asked::check_allowed(&state, &headers)?;
    input.only(&[])?;
    let wrong = |e: serde_json::Error| Problem::bad(format!("the body is not {{\"query\": …}}: {e}"));
    let Query { query, team } = serde_json::from_str(&body).map_err(wrong)?;
    let team = team.map(|team| vec![("team".to_owned(), team)]).unwrap_or_default();
    let (_, teams) = asked_teams(&state, &Input::from(team)).await?;
    let rows = asked::json(&state, teams, query, visitor(&state, &headers, peer)).await?;
    answered(&json!({"columns": rows.columns, "rows": rows.rows, "truncated": rows.is_cut}))
}

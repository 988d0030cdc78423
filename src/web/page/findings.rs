//! Findings of re-scans and checks.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;

use crate::model::Instant;
use crate::report::{counted, plural, printable};

use super::super::AppState;
use super::super::answer::findings::{FindingView, PARAMETERS, find, kinds};
use super::super::format::Time;
use super::page_request::{Frame, PageRequest};
use super::{Page, or_mistake, shown_as};

const ROWS: usize = 50;

struct Row {
    kind: String,
    class: &'static str,
    stream: String,
    subject: String,
    period: String,
    reason: String,
    count: String,
    found: Time,
    seq: u64,
    team: String,
}

struct Kind {
    name: String,
    count: String,
    is_asked: bool,
}

#[derive(Template)]
#[template(path = "web/findings.html")]
struct Findings {
    frame: Frame,
    rows: Vec<Row>,
    kinds: Vec<Kind>,
    stream: String,
    seq: String,
    problem: Option<String>,
    next: Option<String>,
    first: Option<String>,
    total: String,
    has_teams: bool,
}

pub async fn findings(State(state): State<Arc<AppState>>, request: PageRequest) -> Page {
    let counts = kinds(&state, request.teams.clone()).await?;
    let found = match request.input.only(&PARAMETERS) {
        Ok(()) => find(&state, &request.input, request.teams.clone(), ROWS).await,
        Err(problem) => Err(problem),
    };
    let (found, problem, status) = or_mistake(found)?;
    let asked = request.input.get("kind").unwrap_or_default();
    let rows = found.iter().flat_map(|found| &found.rows).map(|finding| row_of(&request, finding)).collect();
    let next = found.and_then(|found| found.next);
    let document = Findings {
        rows,
        total: plural(counts.iter().map(|(_, count)| count).sum(), "finding"),
        kinds: counts
            .iter()
            .map(|(name, count)| Kind { name: name.clone(), count: counted(*count), is_asked: name == asked })
            .collect(),
        stream: request.input.shown("stream"),
        seq: request.input.shown("seq"),
        problem,
        next: next.map(|after| request.input.link("/findings", &[("after", &after)])),
        first: request.input.get("after").map(|_| request.input.link("/findings", &[("after", "")])),
        has_teams: request.team.is_none() && request.teams.len() > 1,
        frame: request.frame,
    };
    shown_as(status, &document)
}

fn row_of(request: &PageRequest, finding: &FindingView) -> Row {
    let text = |at: Option<Instant>| at.map(|at| request.time(at).text);
    Row {
        kind: finding.kind.replace('_', " "),
        class: match finding.kind.as_str() {
            "gap" => "late",
            "changed_upstream" | "no_longer_served" | "unstable_window" | "quarantined" | "silence" => "warn",
            _ => "waiting",
        },
        stream: finding.stream.clone().unwrap_or_default(),
        subject: printable(&finding.subject),
        period: match (text(finding.from_time), text(finding.to_time)) {
            (None, None) => "–".to_owned(),
            (Some(from), Some(to)) if from == to => from,
            (Some(from), Some(to)) => format!("{from} to {to}"),
            (Some(from), None) => format!("from {from}"),
            (None, Some(to)) => format!("until {to}"),
        },
        reason: printable(&finding.reason),
        count: counted(finding.count),
        found: request.exact(finding.found_at),
        seq: finding.ledger_seq,
        team: request.names.label(&finding.team_id),
    }
}

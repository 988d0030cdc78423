//! The quarantine: events that do not fit the schema.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;

use crate::report::{counted, printable};

use super::super::AppState;
use super::super::answer::quarantine::{PARAMETERS, Quarantined, RAW_CHARS_MAX, find};
use super::super::format::{Time, pretty};
use super::page_request::{Frame, PageRequest};
use super::{Page, or_mistake, shown_as};

const ROWS: usize = 25;

struct Item {
    stream: String,
    reason: String,
    detail: String,
    id: String,
    at: Option<Time>,
    seen: Time,
    text: String,
    is_cut: bool,
    chars: String,
    team: String,
}

#[derive(Template)]
#[template(path = "web/quarantine.html")]
struct Quarantine {
    frame: Frame,
    items: Vec<Item>,
    stream: String,
    problem: Option<String>,
    next: Option<String>,
    first: Option<String>,
    has_teams: bool,
}

pub async fn quarantine(State(state): State<Arc<AppState>>, request: PageRequest) -> Page {
    let found = match request.input.only(&PARAMETERS) {
        Ok(()) => find(&state, &request.input, request.teams.clone(), ROWS).await,
        Err(problem) => Err(problem),
    };
    let (found, problem, status) = or_mistake(found)?;
    let items = found.iter().flat_map(|found| &found.rows).map(|row| item(&request, row)).collect();
    let next = found.and_then(|found| found.next);
    let document = Quarantine {
        items,
        stream: request.input.shown("stream"),
        problem,
        next: next.map(|after| request.input.link("/quarantine", &[("after", &after)])),
        first: request.input.get("after").map(|_| request.input.link("/quarantine", &[("after", "")])),
        has_teams: request.team.is_none() && request.teams.len() > 1,
        frame: request.frame,
    };
    shown_as(status, &document)
}

fn item(request: &PageRequest, row: &Quarantined) -> Item {
    let raw = row.raw.as_deref().unwrap_or_default();
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(raw).is_ok();
    Item {
        stream: row.stream.clone(),
        reason: printable(&row.reason.replace('_', " ")),
        detail: row.detail.as_deref().map(printable).unwrap_or_default(),
        id: printable(&row.event_id),
        at: row.event_time.map(|at| request.exact(at)),
        seen: request.exact(row.first_seen_at),
        text: if is_json { pretty(raw) } else { printable(raw) },
        is_cut: row.raw_chars.is_some_and(|chars| chars > RAW_CHARS_MAX as u64),
        chars: counted(row.raw_chars.unwrap_or(0)),
        team: request.names.label(&row.team_id),
    }
}

//! A search for sessions, and one session with all its events.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;

use crate::model::Instant;
use crate::report::{TeamNames, counted, local_time_text, printable};

use super::super::AppState;
use super::super::answer::period;
use super::super::answer::sessions::{Event, OUTCOMES, PARAMETERS, Search, Session, newest, session as one};
use super::super::format::{Time, length, pretty};
use super::super::input::link;
use super::super::problem::Problem;
use super::page_request::{Frame, PageRequest};
use super::{Page, shown_as, shown_page};

/// Number of sessions on a page.
const ROWS: usize = 50;
/// Maximum number of characters in a cell.
const CELL_CHARS_MAX: usize = 60;
/// Maximum number of shown characters of an event; the API returns the whole event.
const RAW_CHARS_MAX: usize = 100_000;

/// A session in a list.
pub struct Row {
    pub href: String,
    pub began: Time,
    pub user: String,
    pub computer: String,
    pub address: String,
    pub outcome: &'static str,
    pub outcome_class: &'static str,
    pub length: String,
    pub events: String,
    pub team: String,
}

/// The search, as the form shows it.
#[derive(Default)]
pub struct SearchForm {
    pub user: String,
    pub computer: String,
    pub address: String,
    pub outcome: String,
    pub from: String,
    pub to: String,
    pub outcomes: Vec<(&'static str, &'static str)>,
}

#[derive(Template, Default)]
#[template(path = "web/sessions.html")]
struct Sessions {
    frame: Frame,
    asked: SearchForm,
    problem: Option<String>,
    /// The teams whose sessions lack archived events.
    behind: Vec<String>,
    rows: Vec<Row>,
    period: String,
    next: Option<String>,
    first: Option<String>,
    /// The period of the newest sessions, if the search found none.
    newest: Option<(String, String)>,
    is_narrow: bool,
    has_teams: bool,
    day_href: String,
}

pub async fn sessions(State(state): State<Arc<AppState>>, request: PageRequest) -> Page {
    let asked = SearchForm::of(&request);
    match found(&state, &request).await {
        Ok((search, rows, next)) => {
            let latest = if rows.is_empty() { newest(&state, request.teams.clone()).await? } else { None };
            let has_teams = request.team.is_none() && request.teams.len() > 1;
            let begin = |at: Instant| local_time_text(at, &request.zone);
            let document = Sessions {
                problem: None,
                behind: request.sessions_behind(&state).await?,
                rows: rows.iter().map(|session| row_of(&request, session)).collect(),
                period: format!(
                    "{} to {}, {}",
                    begin(search.period.start),
                    begin(search.period.end),
                    request.zone.name()
                ),
                next: next.map(|after| request.input.link("/sessions", &[("after", &after)])),
                first: request.input.get("after").map(|_| request.input.link("/sessions", &[("after", "")])),
                newest: latest.map(|at| (request.time(at).text, around(&request, at))),
                is_narrow: search.is_narrow(),
                has_teams,
                day_href: day_href(&request, rows.first().map_or(search.period.end, |row| row.first_event_at)),
                asked,
                frame: request.frame,
            };
            shown_page(&document)
        }
        Err(problem) if problem.status.is_client_error() => {
            let document = Sessions {
                asked,
                problem: Some(problem.message.clone()),
                day_href: "/day".to_owned(),
                frame: request.frame,
                ..Sessions::default()
            };
            shown_as(problem.status, &document)
        }
        Err(problem) => Err(problem),
    }
}

async fn found(state: &AppState, request: &PageRequest) -> Result<(Search, Vec<Session>, Option<String>), Problem> {
    // The links of the day's page keep its grouping.
    request.input.only(&[&PARAMETERS[..], &["by"]].concat())?;
    let period = period(&request.input, request.now, &request.zone)?;
    let search = Search::of(&request.input, request.teams.clone(), period)?;
    let found = search.find(state, &request.input, ROWS).await?;
    Ok((search, found.rows, found.next))
}

impl SearchForm {
    pub fn of(request: &PageRequest) -> Self {
        let shown = |name: &str| request.input.shown(name);
        Self {
            user: shown("user"),
            computer: shown("computer"),
            address: shown("address"),
            outcome: shown("outcome"),
            from: request.given_day("from"),
            to: request.given_day("to"),
            outcomes: OUTCOMES.map(|outcome| (outcome, words(outcome).0)).into(),
        }
    }
}

/// The 30 days up to the day of the newest session.
fn around(request: &PageRequest, at: Instant) -> String {
    let to = request.day(at.plus(std::time::Duration::from_secs(86_400)));
    request.input.link("/sessions", &[("to", &to), ("from", ""), ("after", "")])
}

fn day_href(request: &PageRequest, at: Instant) -> String {
    let changes = [("from", ""), ("to", ""), ("after", ""), ("limit", ""), ("day", &request.day(at))];
    request.input.link("/day", &changes)
}

/// A session's outcome in words, and its CSS class.
pub fn words(outcome: &str) -> (&'static str, &'static str) {
    match outcome {
        "ended" => ("ended", "calm"),
        "open" => ("open", "fresh"),
        "auth_failed" => ("failed to authenticate", "late"),
        "requested_only" => ("requested only", "waiting"),
        "closed_only" => ("closed only", "waiting"),
        _ => ("unknown", "waiting"),
    }
}

pub fn cut(text: &str) -> String {
    let text = printable(text);
    match text.char_indices().nth(CELL_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The first known text.
fn first_of(texts: [&Option<String>; 2]) -> String {
    texts.into_iter().flatten().find(|text| !text.is_empty()).map_or_else(|| "–".to_owned(), |text| cut(text))
}

pub fn session_href(session: &Session) -> String {
    link("/session", [("team", session.team_id.as_str()), ("id", session.connection_id.as_str())])
}

pub fn row_of(request: &PageRequest, session: &Session) -> Row {
    let (outcome, outcome_class) = words(&session.outcome);
    Row {
        href: session_href(session),
        began: request.exact(session.first_event_at),
        user: first_of([&session.peer_email, &session.local_user_name]),
        computer: first_of([&session.computer_host_name, &session.device_id]),
        address: first_of([&session.peer_ip, &session.direct_ip]),
        outcome,
        outcome_class,
        length: session.duration_ms.map_or_else(|| "–".to_owned(), length),
        events: counted(session.event_count),
        team: request.names.label(&session.team_id),
    }
}

struct EventView {
    at: Time,
    fraction: String,
    kind: String,
    id: String,
    revision: i32,
    first_seen: Time,
    redacted: bool,
    json: String,
    has_text: bool,
    is_cut: bool,
}

#[derive(Template)]
#[template(path = "web/session.html")]
struct OneSession {
    frame: Frame,
    id: String,
    outcome: &'static str,
    outcome_class: &'static str,
    lead: String,
    steps: Vec<(&'static str, Option<Time>)>,
    facts: Vec<(&'static str, String)>,
    conflicts: String,
    events: Vec<EventView>,
    event_count: usize,
    api_href: String,
    day_href: String,
}

pub async fn session(State(state): State<Arc<AppState>>, request: PageRequest) -> Page {
    request.input.only(&["team", "id"])?;
    let (session, events) = one(&state, request.teams.clone(), &request.input).await?;
    let (outcome, outcome_class) = words(&session.outcome);
    let row = row_of(&request, &session);
    let day = request.day(session.first_event_at);
    let document = OneSession {
        id: printable(&session.connection_id),
        outcome,
        outcome_class,
        lead: format!("{} to {}, from {}", row.user, row.computer, row.address),
        steps: [
            ("requested", session.requested_at),
            ("authenticated", session.authenticated_at),
            ("established", session.established_at),
            ("closed", session.closed_at),
        ]
        .map(|(name, at)| (name, at.map(|at| request.exact(at))))
        .into(),
        facts: facts(&session, &request.names),
        conflicts: session.conflicts.as_deref().map(pretty).unwrap_or_default(),
        events: events.iter().map(|event| event_of(&request, event)).collect(),
        event_count: usize::try_from(session.event_count).unwrap_or(usize::MAX),
        api_href: format!("/api{}", session_href(&session)),
        day_href: link("/day", [("team", session.team_id.as_str()), ("day", &day)]),
        frame: request.frame,
    };
    shown_page(&document)
}

fn facts(session: &Session, names: &TeamNames) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| value.as_deref().map(printable).unwrap_or_default();
    let all = [
        ("Team", names.with_id(&session.team_id)),
        ("User", text(&session.peer_email)),
        ("User on the computer", text(&session.local_user_name)),
        ("Computer", text(&session.computer_host_name)),
        ("Computer's id", text(&session.device_id)),
        ("Address", text(&session.peer_ip)),
        ("Direct address", text(&session.direct_ip)),
        ("Tunnel", text(&session.tunnel_id)),
        ("Kind of source", text(&session.source_type)),
        ("Length", session.duration_ms.map(length).unwrap_or_default()),
        ("Failed attempts", if session.failed_attempts > 0 { counted(session.failed_attempts) } else { String::new() }),
        ("Reasons", text(&session.failure_reasons)),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn event_of(request: &PageRequest, event: &Event) -> EventView {
    let raw = event.raw.as_deref().unwrap_or_default();
    let is_cut = raw.chars().nth(RAW_CHARS_MAX).is_some();
    let shown: String = raw.chars().take(RAW_CHARS_MAX).collect();
    EventView {
        at: request.exact(event.event_time),
        fraction: format!(".{:03}", event.event_time_ns.rem_euclid(1_000_000_000) / 1_000_000),
        kind: printable(&event.event_type),
        id: printable(&event.event_id),
        revision: event.revision,
        first_seen: request.exact(event.first_seen_at),
        redacted: event.redacted,
        json: pretty(&shown),
        has_text: event.raw.is_some(),
        is_cut,
    }
}

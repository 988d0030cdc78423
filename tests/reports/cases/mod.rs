//! Reports over small archives. Each archive holds a case that the golden archive lacks.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod changes;
mod charts;
mod cut_scans;
mod dossier;
mod erased;
mod events;
mod expired;
mod leavers;
mod recipes;
mod retained;
mod rosters;
mod unclosed;
mod unread_parts;
mod unreadable;

use std::collections::BTreeMap;
use std::time::Duration;

use annals::archive::{Draft, SessionsDraft, SessionsMark, WindowRecord, WindowRows, WindowState};
use annals::correlate::{SESSION_RULES, connection_of, session_of};
use annals::model::{ConnectionDetail, Detail, EventRow, Instant, Stream, TeamId, WindowGrid};
use annals::report::Catalog;
use serde_json::{Value, json};

use crate::golden::answers::{Question, ask};
use crate::golden::roster;
use crate::reporting::{DAY, HOUR, Place, at};

const TEAM: &str = "acme";
/// When the events are committed.
const NOW: &str = "2026-11-09T12:00:00Z";
const SECOND: Duration = Duration::from_secs(1);
const FAILED: &str = "authFailedEvent";
const SUCCEEDED: &str = "authSucceededEvent";
const ESTABLISHED: &str = "incomingConnectionEvent";

/// An event of the computer d1, of a connection with the event's id.
fn connection(id: &str, kind: &str, time: Instant, change: impl FnOnce(&mut ConnectionDetail)) -> EventRow {
    let mut detail = ConnectionDetail {
        connection_id: Some(id.into()),
        device_id: Some("d1".into()),
        computer_host_name: Some("PC-1".into()),
        tunnel_id: Some("fluid".into()),
        source_type: Some("cloud".into()),
        peer_email: Some("ann@own.example".into()),
        peer_ip: Some("203.0.113.9".into()),
        ..ConnectionDetail::default()
    };
    change(&mut detail);
    event(id, kind, time, Detail::Connections(detail.into()))
}

fn event(id: &str, kind: &str, time: Instant, detail: Detail) -> EventRow {
    EventRow {
        team_id: TEAM.into(),
        event_id: id.into(),
        time,
        event_type: kind.into(),
        revision: 1,
        first_seen_at: time.plus(HOUR),
        redacted: false,
        raw: format!("{{\"id\":\"{id}\"}}").into(),
        detail,
        served_digest: None,
    }
}

fn activity(id: &str, kind: &str, time: &str, payload: &Value) -> EventRow {
    event(id, kind, at(time), Detail::Activity { token_info: None, payload: Some(payload.to_string()) })
}

/// A change by the person that `token_info` names.
fn change_by(token_info: &Value, id: &str, kind: &str, time: &str, payload: &Value) -> EventRow {
    let detail = Detail::Activity { token_info: Some(token_info.to_string()), payload: Some(payload.to_string()) };
    event(id, kind, at(time), detail)
}

/// No computer id: only the computer's name tells which one it is.
fn unnamed(host: &'static str) -> impl FnOnce(&mut ConnectionDetail) {
    move |detail: &mut ConnectionDetail| {
        detail.device_id = None;
        detail.computer_host_name = Some(host.into());
    }
}

fn commit(place: &Place, draft: Draft, now: Instant) {
    let _ = place.opened().writer(&TeamId::from(TEAM)).unwrap().commit(draft, now).unwrap();
}

/// Commits events with their windows and sessions.
fn commit_events(place: &Place, stream: Stream, rows: Vec<EventRow>) {
    let (grid, mut draft) = (WindowGrid::new(DAY), Draft::default());
    if stream == Stream::Connections {
        let mut events: BTreeMap<&str, Vec<&EventRow>> = BTreeMap::new();
        for row in &rows {
            events.entry(connection_of(row).unwrap()).or_default().push(row);
        }
        let open = events.values().filter_map(|events| session_of(events)).collect();
        let mark = SessionsMark { rules: SESSION_RULES, through: None, until: None };
        draft.sessions =
            Some(SessionsDraft { mark, is_anew: false, open, finished: Vec::new(), replaced: BTreeMap::new() });
    }
    let mut days: BTreeMap<Instant, Vec<EventRow>> = BTreeMap::new();
    for row in rows {
        days.entry(grid.window_of(row.time).start).or_default().push(row);
    }
    for (start, rows) in days {
        let window = grid.window_of(start);
        draft.body.windows.push(WindowRecord {
            state: WindowState::Sealed,
            reads: 2,
            requests: 4,
            events: rows.len() as u64,
            settled_at: Some(window.end.plus(HOUR)),
            ..WindowRecord::new(stream, window)
        });
        draft.rows.push(WindowRows::new(stream, window, rows, true));
    }
    commit(place, draft, at(NOW));
}

/// Commits events of one day, and then each as a later revision with the same content.
fn commit_twice(place: &Place, stream: Stream, rows: &[EventRow]) {
    let window = WindowGrid::new(DAY).window_of(rows[0].time);
    for revision in [1, 2] {
        let later = |row: &EventRow| EventRow {
            revision,
            first_seen_at: row.first_seen_at.plus(HOUR * revision),
            raw: format!("{{\"revision\":{revision}}}").into(),
            ..row.clone()
        };
        let rows = vec![WindowRows::new(stream, window, rows.iter().map(later).collect(), false)];
        commit(place, Draft { rows, ..Draft::default() }, at(NOW));
    }
}

/// Commits a reading of the roster.
fn read_roster(place: &Place, seen_at: &str, served: &Value) {
    let mut writer = place.opened().writer(&TeamId::from(TEAM)).unwrap();
    roster::record(&mut writer, served, at(seen_at));
}

/// A roster of people, groups and computers, without sign-in details.
fn people(users: &Value, groups: &Value, computers: &Value) -> Value {
    json!({
        "team": {"id": TEAM, "name": "Acme", "users": {}, "devices": {}, "groups": groups},
        "users": {"users": users},
        "devices": {"devices": computers},
        "saml/users": [],
    })
}

fn user(id: &str, email: &str) -> Value {
    json!({"id": id, "email": email, "role": "user", "remoteAccess": "enabled"})
}

/// The usual four weeks, in UTC.
fn asked(report: &'static str) -> Question {
    Question { zone: "UTC", ..Question::usual(report) }
}

fn rows(place: &Place, question: &Question) -> Vec<Value> {
    let catalog = Catalog::embedded();
    let report = catalog.reports().iter().find(|report| report.id == question.report).unwrap();
    ask(&place.data(), report, question).objects()
}

/// The values of a column.
fn column(place: &Place, question: &Question, name: &str) -> Vec<Value> {
    rows(place, question).iter().map(|row| row[name].clone()).collect()
}

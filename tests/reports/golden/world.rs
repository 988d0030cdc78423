//! Makes an archive from the texts in `tests/golden_world/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use annals::api::wire;
use annals::archive::{
    Archive, Body, Draft, Finding, FindingKind, ReviewOutcome, ReviewRecord, SessionsDraft, SessionsMark, StreamRecord,
    TeamWriter, WindowRecord, WindowRows, WindowState,
};
use annals::correlate::{SESSION_RULES, connection_of, is_finished, session_of};
use annals::model::{Digest, EventRow, Instant, Multiset, Range, RawEvent, RejectRow, Stream, TeamId, WindowGrid};
use annals::normalize::{normalize, parse};
use annals::report::ViewData;
use annals::store::LocalStore;
use bytes::Bytes;
use tempfile::TempDir;

use super::roster;

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);
const TEAMS: [&str; 2] = ["alpine", "hudson"];
/// The days that are read with or without events. Earlier days are read only if they have events.
const READ_FROM: &str = "2026-10-12T00:00:00Z";
/// The last day is read, but not settled.
const SETTLED_TO: &str = "2026-11-08T00:00:00Z";
const READ_TO: &str = "2026-11-09T00:00:00Z";
/// A day of alpine's connections that was never read.
const UNREAD_DAY: &str = "2026-10-31T00:00:00Z";
/// A day of alpine's connections with events that came late.
const LATE_DAY: &str = "2026-10-14T00:00:00Z";
const COMMITTED_AT: &str = "2026-11-09T00:20:00Z";

/// The archive. A drop removes it.
pub struct World {
    directory: TempDir,
}

impl World {
    pub fn write() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let archive = open(directory.path(), true);
        for team in TEAMS {
            let team = TeamId::from(team);
            let mut writer = archive.writer(&team).unwrap();
            for (seen_at, path) in rosters(&team) {
                roster::write(&mut writer, &path, seen_at);
            }
            write_history(&team, &mut writer);
        }
        Self { directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn data(&self) -> ViewData {
        let root = self.path();
        let archive = open(root, false);
        let mut data = ViewData { archive: Some(archive.clone()), ..ViewData::default() };
        for team in archive.teams().unwrap() {
            data.add_state(root.to_str().unwrap(), archive.read(&team).unwrap().state());
        }
        data
    }
}

pub fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

fn open(root: &Path, is_new: bool) -> Archive {
    let store = Arc::new(LocalStore::new(root));
    if is_new { Archive::open_or_create(store, || "golden".into()).unwrap() } else { Archive::open(store).unwrap() }
}

pub fn text_of(team: &TeamId) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden_world").join(team.as_str())
}

/// The files `roster-<day>.json`. Each is read at three in the morning of its day.
fn rosters(team: &TeamId) -> BTreeMap<Instant, PathBuf> {
    let folder = std::fs::read_dir(text_of(team)).unwrap().map(|entry| entry.unwrap().path());
    let day_of = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let day = name.strip_prefix("roster-")?.strip_suffix(".json")?;
        Some(at(&format!("{day}T03:00:00Z")))
    };
    folder.filter_map(|path| Some((day_of(&path)?, path))).collect()
}

/// One commit with all events of a team, and their sessions.
fn write_history(team: &TeamId, writer: &mut TeamWriter) {
    let mut draft = Draft::from(Body { findings: findings(team), reviews: reviews(team), ..Body::default() });
    for stream in Stream::ALL {
        let days = Days::of(team, stream);
        let begins = days.windows.keys().next().copied();
        draft.body.streams.push((stream, StreamRecord { begins, ..StreamRecord::default() }));
        draft.rejects.extend(days.rejects);
        if stream == Stream::Connections {
            draft.sessions = Some(sessions(days.windows.values().flatten()));
        }
        for (start, rows) in days.windows {
            let range = WindowGrid::new(DAY).window_of(start);
            draft.body.windows.push(window(team, stream, range, rows.len()));
            if !rows.is_empty() {
                draft.rows.push(WindowRows::new(stream, range, rows, start < at(SETTLED_TO)));
            }
        }
    }
    let _ = writer.commit(draft, at(COMMITTED_AT)).unwrap();
}

/// The reviews: alpine on two days, hudson never.
fn reviews(team: &TeamId) -> Vec<ReviewRecord> {
    if team.as_str() != "alpine" {
        return Vec::new();
    }
    let review = |reviewer: &str, reviewed_at: &str, ticket: Option<&str>| ReviewRecord {
        reviewed_at: at(reviewed_at),
        reviewer: reviewer.to_owned(),
        pack_sha256: Digest::of(reviewer.as_bytes()),
        period_from: at("2026-10-12T00:00:00Z"),
        period_to: at("2026-10-13T00:00:00Z"),
        reports: vec!["R02".to_owned(), "R04".to_owned()],
        findings: u64::from(ticket.is_some()) * 3,
        outcome: if ticket.is_some() { ReviewOutcome::FollowedUp } else { ReviewOutcome::Accepted },
        ticket: ticket.map(str::to_owned),
    };
    vec![
        review("dora@alpine.example", "2026-10-13T09:00:00Z", Some("SEC-1")),
        review("=1+1", "2026-10-14T08:00:00Z", None),
    ]
}

fn sessions<'a>(rows: impl Iterator<Item = &'a EventRow>) -> SessionsDraft {
    let mut events: BTreeMap<&str, Vec<&EventRow>> = BTreeMap::new();
    for row in rows {
        if let Some(id) = connection_of(row) {
            events.entry(id).or_default().push(row);
        }
    }
    let made = events.values().filter_map(|events| session_of(events));
    let (finished, open) = made.partition(|session| is_finished(session, at(READ_TO)));
    let mark = SessionsMark { rules: SESSION_RULES, through: None, until: None };
    SessionsDraft { mark, is_anew: false, open, finished, replaced: BTreeMap::new() }
}

/// A stream's rows by day, and its rejects.
struct Days {
    windows: BTreeMap<Instant, Vec<EventRow>>,
    rejects: Vec<RejectRow>,
}

impl Days {
    fn of(team: &TeamId, stream: Stream) -> Self {
        let grid = WindowGrid::new(DAY);
        let mut days = Days { windows: BTreeMap::new(), rejects: Vec::new() };
        let mut start = at(READ_FROM);
        while start < at(READ_TO) {
            days.windows.insert(start, Vec::new());
            start = start.plus(DAY);
        }
        if is_unread(team, stream) {
            days.windows.remove(&at(UNREAD_DAY));
        }
        let mut equal: Multiset<_> = Multiset::default();
        for event in events(team, stream) {
            let occurrence = if event.id.is_some() { 1 } else { equal.add(event.digest) };
            let seen_at = event.at().unwrap_or_else(|| at(LATE_DAY)).plus(MINUTE);
            match normalize(team, stream, (&event, parse(stream, &event)), occurrence, 1, seen_at) {
                Ok(row) => days.windows.entry(grid.window_of(row.time).start).or_default().push(row),
                Err(reject) => days.rejects.push(*reject),
            }
        }
        days
    }
}

/// The lines of the text as one answer of the service.
fn events(team: &TeamId, stream: Stream) -> Vec<RawEvent> {
    let path = text_of(team).join(format!("{stream}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let list = if stream == Stream::Connections { "deviceEvents" } else { "events" };
    let body = Bytes::from(format!("{{\"{list}\":[{}]}}", lines.join(",")));
    if stream == Stream::Billing {
        wire::billing(&body).unwrap().events
    } else {
        wire::page(stream, None, &body).unwrap().events
    }
}

fn is_unread(team: &TeamId, stream: Stream) -> bool {
    team.as_str() == "alpine" && stream == Stream::Connections
}

fn window(team: &TeamId, stream: Stream, range: Range, events: usize) -> WindowRecord {
    let is_settled = range.start < at(SETTLED_TO);
    let late = if is_unread(team, stream) && range.start == at(LATE_DAY) { 2 } else { 0 };
    WindowRecord {
        state: if is_settled { WindowState::Settled } else { WindowState::Provisional },
        reads: if is_settled { 2 } else { 1 },
        requests: if is_settled { 4 } else { 1 },
        events: events as u64,
        late,
        settled_at: is_settled.then(|| range.end.plus(15 * MINUTE)),
        ..WindowRecord::new(stream, range)
    }
}

fn findings(team: &TeamId) -> Vec<Finding> {
    let found = |stream, kind, subject: &str, from: &str, to: Option<&str>, reason: &str, count| Finding {
        stream: Some(stream),
        kind,
        subject: subject.to_owned(),
        from: Some(at(from)),
        to: to.map(at),
        reason: reason.to_owned(),
        count,
        found_at: at(from).plus(60 * MINUTE),
    };
    if team.as_str() != "alpine" {
        let day = ("2026-10-24T00:00:00Z", Some("2026-10-25T00:00:00Z"));
        return vec![found(
            Stream::Activity,
            FindingKind::Silence,
            "2026-10-24",
            day.0,
            day.1,
            "an empty answer: the archive holds 4 events of the window, and 9 are usual",
            1,
        )];
    }
    let removed = "the computer was removed, and with it what it had connected since the last read";
    let passed = "Annals did not read this time within the plan's span: the service may no longer show its events";
    let gap =
        |subject, from, to, reason| found(Stream::Connections, FindingKind::Gap, subject, from, Some(to), reason, 1);
    vec![
        gap("pc-hydra", "2026-10-28T14:00:00Z", "2026-10-28T15:00:00Z", removed),
        gap("2026-11-07T03Z", "2026-11-07T03:00:00Z", "2026-11-07T04:00:00Z", passed),
        gap("2026-11-05T03Z", "2026-11-05T03:00:00Z", "2026-11-05T04:00:00Z", passed),
        found(
            Stream::Connections,
            FindingKind::GapClosed,
            "2026-11-05T03Z",
            "2026-11-05T03:00:00Z",
            Some("2026-11-05T04:00:00Z"),
            "a later read covered this range completely",
            1,
        ),
        found(
            Stream::Connections,
            FindingKind::RemovedBefore,
            "pc-old",
            "2026-10-12T00:00:00Z",
            Some("2026-10-13T12:00:00Z"),
            "the computer was removed before this span was first read: its connections are missing",
            1,
        ),
        found(Stream::Connections, FindingKind::Late, "2026-10-14", LATE_DAY, None, "first seen on a re-scan", 2),
        found(Stream::Connections, FindingKind::Quarantined, "no_event_field", "2026-10-30T09:00:00Z", None, "kept", 1),
        found(
            Stream::Activity,
            FindingKind::NewEventType,
            "teamQuantumPolicyChangedEvent",
            "2026-11-01T09:00:00Z",
            None,
            "new",
            1,
        ),
    ]
}

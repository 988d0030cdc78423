//! Tests of the whole archive, on both stores. The fixture makes small, readable histories.

mod advance;
mod buckets;
mod cache;
mod chain;
mod commits;
mod concurrent_writer;
mod copy;
mod damage;
mod days;
mod drafts;
mod erased_files;
mod erasure;
mod expiry;
mod extents;
mod failed_syncs;
mod faults;
mod fencing;
mod flips;
mod handover;
mod heads;
mod hostile;
mod inventory;
mod joined_windows;
mod kills;
mod ledger_ends;
mod notices;
mod properties;
mod read_back;
mod records;
mod releases;
mod rules;
mod salts;
mod selection;
mod sessions;
mod signing;
mod snapshots;
mod split_ledger;
mod syncs;
mod torn;
mod torn_contents;
mod torn_disk;
mod vacuum;
mod years;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::model::path::{month_of, year_of};
use crate::model::{
    ConnectionDetail, Detail, EventRow, Instant, Range, RejectRow, SessionOutcome, SessionRow, SessionTexts, Stream,
    TeamId, WindowGrid,
};
use crate::model::{Dataset, InventoryPart::Computers};
use crate::store::{MemoryStore, Store};

use super::table::{Selection, TableReader, session_rows};
use super::{
    Archive, ArchiveError, Body, Committed, Draft, HeldSession, Release, Salts, SessionsDraft, SessionsMark,
    TeamWriter, WindowRecord, WindowRows, WindowState,
};

pub fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

pub fn team() -> TeamId {
    TeamId::from("acme")
}

pub fn now() -> Instant {
    at("2026-11-20T12:00:00Z")
}

pub fn day(date: &str) -> Range {
    WindowGrid::new(Duration::from_secs(86_400)).window_of(at(&format!("{date}T00:00:00Z")))
}

pub fn november() -> Range {
    month_of(now())
}

/// A connection event with all fields.
pub fn event(id: &str, time: Instant) -> EventRow {
    let detail = ConnectionDetail {
        connection_id: Some(format!("c-{id}").as_str().into()),
        device_id: Some("device-1".into()),
        computer_host_name: Some("büro-pc".into()),
        peer_email: Some("someone@example.com".into()),
        peer_ip: Some("192.0.2.7".into()),
        ..ConnectionDetail::default()
    };
    EventRow {
        team_id: team(),
        event_id: id.into(),
        time,
        event_type: "incomingConnectionRequestedEvent".into(),
        revision: 1,
        first_seen_at: at("2026-11-20T11:59:00Z"),
        redacted: false,
        raw: format!("{{\"id\":\"{id}\",\"timestamp\":{}}}", time.nanos()).into(),
        detail: Detail::Connections(detail.into()),
        served_digest: None,
    }
}

/// `count` events of one day, a minute apart, numbered from `first`.
pub fn events(date: &str, first: u64, count: u64) -> Vec<EventRow> {
    let start = day(date).start;
    let one = |n: u64| event(&format!("{date}-{n:04}"), start.plus(Duration::from_secs(n * 60)));
    (first..first + count).map(one).collect()
}

pub fn reject(id: &str, raw: &[u8]) -> RejectRow {
    RejectRow {
        team_id: team(),
        stream: Stream::Connections,
        event_id: id.into(),
        time: None,
        reason: "time_out_of_range".to_owned(),
        detail: "time 1 in Millis lies outside 2000 to 2100".to_owned(),
        first_seen_at: now(),
        redacted: false,
        raw: Bytes::copy_from_slice(raw),
        erased: None,
    }
}

pub fn record(window: Range, state: WindowState, events: u64) -> WindowRecord {
    WindowRecord { state, reads: 1, requests: 2, events, ..WindowRecord::new(Stream::Connections, window) }
}

pub fn rows(date: &str, rows: Vec<EventRow>, compact: bool) -> WindowRows {
    WindowRows::new(Stream::Connections, day(date), rows, compact)
}

/// The history of most tests, one draft for each step: parts, a settled window, another day, a sealed day, the sealed month with
/// its day's late rows, an amendment with a released event, and the joined sessions of the year with one more
/// session.
pub fn history() -> Vec<Draft> {
    let (first, second) = ("2026-11-01", "2026-11-02");
    let windows =
        |state, counts: [u64; 2]| vec![record(day(first), state, counts[0]), record(day(second), state, counts[1])];
    vec![
        Draft {
            body: Body { windows: vec![record(day(first), WindowState::Provisional, 3)], ..Body::default() },
            rows: vec![rows(first, events(first, 0, 3), false)],
            rejects: vec![reject("odd", b"{\"id\":\"odd\"\xff}"), reject("odder", b"{}")],
            ..Draft::default()
        },
        Draft {
            body: Body {
                windows: windows(WindowState::Provisional, [5, 1]),
                inventory: vec![inventory::inventory_read(Computers, "2026-10-31T10:00:00Z", 1)],
                ..Body::default()
            },
            rows: vec![rows(first, events(first, 3, 2), false), rows(second, events(second, 0, 1), false)],
            inventory: vec![(Computers, vec![inventory::computer("d1", "2026-10-31T10:00:00Z", "one")])],
            ..Draft::default()
        },
        Draft {
            body: Body {
                windows: windows(WindowState::Settled, [7, 2]),
                inventory: vec![inventory::inventory_read(Computers, "2026-10-31T11:00:00Z", 1)],
                ..Body::default()
            },
            rows: vec![rows(first, events(first, 5, 2), true), rows(second, events(second, 1, 1), true)],
            inventory: vec![(Computers, vec![inventory::computer("d1", "2026-10-31T11:00:00Z", "two")])],
            ..Draft::default()
        },
        Draft::from(Body {
            windows: windows(WindowState::Sealed, [7, 2]),
            sealed_days: vec![(Stream::Connections, day(second))],
            ..Body::default()
        }),
        Draft {
            body: Body {
                windows: windows(WindowState::Sealed, [7, 3]),
                sealed_months: vec![(Stream::Connections, november())],
                inventory: vec![inventory::inventory_read(Computers, "2026-11-01T11:00:00Z", 2)],
                ..Body::default()
            },
            rows: vec![rows(second, events(second, 2, 1), true)],
            inventory: vec![(Computers, vec![inventory::computer("d2", "2026-11-01T11:00:00Z", "three")])],
            ..Draft::default()
        },
        Draft {
            body: Body { windows: vec![record(day(first), WindowState::Sealed, 9)], ..Body::default() },
            rows: vec![rows(
                first,
                [events(first, 7, 1), vec![event("odd", at("2026-11-01T00:07:00Z"))]].concat(),
                true,
            )],
            ..Draft::default()
        },
        Draft {
            body: Body { windows: vec![record(day(second), WindowState::Sealed, 4)], ..Body::default() },
            rows: vec![rows(second, events(second, 3, 1), true)],
            join_years: vec![year_of(now())],
            ..Draft::default()
        },
    ]
}

/// The ids that a history of this many steps must hold, each once.
pub fn ids_after(steps: usize) -> BTreeMap<String, usize> {
    let drafts = history().into_iter().take(steps);
    let rows = drafts.flat_map(|draft| draft.rows).flat_map(|window| window.rows);
    rows.map(|row| (row.event_id.to_string(), 1)).collect()
}

/// The number of times that each id is archived, read from the files.
pub fn ids_in(archive: &Archive) -> BTreeMap<String, usize> {
    let reader = archive.read(&team()).unwrap();
    let all = Range::new(Instant::EARLIEST, Instant::LATEST);
    let mut ids = BTreeMap::new();
    for event in reader.rows().events_in(Stream::Connections, all).unwrap() {
        *ids.entry(event.event_id.to_string()).or_insert(0) += 1;
    }
    ids
}

pub fn open(store: &Arc<dyn Store>) -> Archive {
    Archive::open_or_create(Arc::clone(store), || "archive-1".to_owned()).unwrap()
}

/// An archive with constant random numbers: equal rows give equal bytes.
pub fn open_same(store: &Arc<dyn Store>) -> Archive {
    open(store).with_random(Arc::new(|| 7))
}

/// The salts of an [`open_same`] archive without a line.
pub fn salts() -> Salts {
    Salts::of_test(team())
}

pub fn writer(archive: &Archive) -> TeamWriter {
    archive.writer(&team()).unwrap()
}

/// Commits a whole history and returns the archive.
pub fn committed(store: &Arc<dyn Store>) -> Archive {
    let archive = open(store);
    let mut writer = writer(&archive);
    for draft in history() {
        let _ = commit(&mut writer, draft).unwrap();
    }
    archive
}

pub fn commit(writer: &mut TeamWriter, draft: Draft) -> Result<Committed, ArchiveError> {
    writer.commit(draft, now())
}

/// The session of an event that is the only one of its connection.
pub fn session(row: &EventRow) -> SessionRow {
    let Detail::Connections(texts) = &row.detail else { panic!("not a connection") };
    let detail = texts.detail();
    SessionRow {
        team_id: row.team_id.clone(),
        connection_id: detail.connection_id.unwrap(),
        requested_at: Some(row.time),
        established_at: None,
        authenticated_at: None,
        closed_at: None,
        first_event_at: row.time,
        last_event_at: row.time,
        duration_ms: None,
        outcome: SessionOutcome::RequestedOnly,
        failed_attempts: 0,
        failure_reasons: None,
        details: SessionTexts::new(std::array::from_fn(|place| texts.get(1 + place))),
        event_count: 1,
        conflicts: None,
    }
}

/// A step of the history with its sessions: sessions of new events are open; earlier open ones are finished. Quarantined
/// events among its rows are released.
pub fn with_sessions(writer: &mut TeamWriter, mut draft: Draft) -> Result<Draft, ArchiveError> {
    let rows: Vec<&EventRow> = draft.rows.iter().flat_map(|window| &window.rows).collect();
    for file in writer.state().files_of(Dataset::Quarantine) {
        let is_row = |reject: &RejectRow| rows.iter().any(|row| row.event_id == reject.event_id);
        let (released, kept) = writer.rows().rejects_of(&file.path)?.into_iter().partition::<Vec<_>, _>(is_row);
        if !released.is_empty() {
            draft.releases.push(Release { path: file.path.clone(), released, kept });
        }
    }
    let mark = SessionsMark { rules: 1, through: None, until: None };
    let open = draft.rows.iter().flat_map(|window| &window.rows).map(session).collect();
    let mut sessions = SessionsDraft { mark, is_anew: false, open, finished: Vec::new(), replaced: BTreeMap::new() };
    for held in writer.rows().open_sessions(|_| true)? {
        sessions.finished.push(held.row.clone());
        sessions.replaced.entry(held.path).or_default().push(held.row);
    }
    draft.sessions = Some(sessions);
    Ok(draft)
}

/// The number of times that each event's session is archived, read from the files.
pub fn sessions_in(archive: &Archive) -> BTreeMap<String, usize> {
    let reader = archive.read(&team()).unwrap();
    let mut ids = BTreeMap::new();
    for file in reader.state().files_of(Dataset::Sessions) {
        let batches = TableReader::open(archive.store().as_ref(), &file.path, file.dataset, Selection::default());
        for row in batches.unwrap().flat_map(|batch| session_rows(&batch.unwrap()).unwrap()) {
            *ids.entry(row.connection_id.as_str().trim_start_matches("c-").to_owned()).or_insert(0) += 1;
        }
    }
    ids
}

/// The ids that must be in quarantine after this many steps of the history.
pub fn quarantined_after(steps: usize) -> Vec<String> {
    let rejects = history().into_iter().take(steps).flat_map(|draft| draft.rejects).map(|row| row.event_id.to_string());
    rejects.filter(|id| !ids_after(steps).contains_key(id)).collect()
}

pub fn quarantined_in(archive: &Archive) -> Vec<String> {
    let mut rejects = archive.read(&team()).unwrap().rows().rejects(Stream::Connections).unwrap();
    rejects.sort();
    rejects.into_iter().map(|reject| reject.event_id.to_string()).collect()
}

/// The live files whose paths begin with `directory`, sorted by path.
pub fn live_under(store: &Arc<dyn Store>, directory: &str) -> Vec<String> {
    let reader = open(store).read(&team()).unwrap();
    reader.state().files.keys().filter(|path| path.starts_with(directory)).cloned().collect()
}

/// Ten days later, a vacuum removes every file that no line names.
pub fn vacuumed(disk: &MemoryStore) {
    disk.set_now(disk.now().unwrap().plus(Duration::from_secs(10 * 86_400)));
    let _ = writer(&open(&(Arc::new(disk.clone()) as Arc<dyn Store>))).vacuum(now()).unwrap();
}

pub fn files_under(store: &Arc<dyn Store>, directory: &str) -> Vec<String> {
    store.list(directory).unwrap().into_iter().map(|entry| entry.path).collect()
}

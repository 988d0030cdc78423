//! Sessions over several commits: any history in any number of commits, archives without sessions, and an interrupted
//! rebuild.

use crate::common;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Draft, TeamWriter, VerifyOptions, WindowRows, verify};
use annals::correlate::{connection_of, session_of};
use annals::model::{
    ConnectionDetail, ConnectionId, Dataset, Detail, EventId, EventRow, Instant, Range, RawEvent, ServedTime,
    SessionRow, Stream, TeamId, WindowGrid,
};
use annals::pipeline::{Chunk, Settings, correlate, defer_sessions};
use annals::store::{MemoryStore, Store};
use common::faulty_store::{Fault, FaultyStore};
use common::team_world::{World, at};
use proptest::collection::vec;
use proptest::prelude::*;

const KINDS: [&str; 6] = [
    "incomingConnectionRequest",
    "incomingConnectionEvent",
    "authSucceededEvent",
    "authFailedEvent",
    "connectionClosedEvent",
    "somethingNewEvent",
];
const DAY: Duration = Duration::from_secs(86_400);
const NOW: &str = "2026-11-20T12:00:00Z";

fn event(id: &str, connection: u64, kind: usize, time: Instant) -> EventRow {
    let detail = ConnectionDetail {
        connection_id: (connection > 0).then(|| format!("c{connection}").as_str().into()),
        computer_host_name: Some(format!("host-{}", connection % 7).into()),
        peer_email: (kind != 2).then(|| format!("p{}@x", id.len() % 3).into()),
        failure_reason: (kind == 3).then(|| format!("reason {}", id.len() % 2).into()),
        ..ConnectionDetail::default()
    };
    EventRow {
        team_id: "t".into(),
        event_id: id.into(),
        time,
        event_type: KINDS[kind].into(),
        revision: 1,
        first_seen_at: at(NOW),
        redacted: false,
        raw: format!("{{\"id\":\"{id}\"}}").into(),
        detail: Detail::Connections(detail.into()),
        served_digest: None,
    }
}

fn open(store: &Arc<dyn Store>) -> (Archive, TeamWriter) {
    let archive = Archive::open_or_create(Arc::clone(store), || "test".into()).unwrap();
    let writer = archive.writer(&TeamId::from("t")).unwrap();
    (archive, writer)
}

/// By the windows that own them.
fn draft(rows: &[EventRow], compact: bool) -> Draft {
    let mut windows: BTreeMap<Range, Vec<EventRow>> = BTreeMap::new();
    for row in rows {
        windows.entry(WindowGrid::new(DAY).window_of(row.time)).or_default().push(row.clone());
    }
    let window = |(window, rows)| WindowRows::new(Stream::Connections, window, rows, compact);
    Draft { rows: windows.into_iter().map(window).collect(), ..Draft::default() }
}

/// The archived sessions, by connection.
fn held(writer: &mut TeamWriter, rows: &[EventRow]) -> BTreeMap<String, SessionRow> {
    let ids: Vec<ConnectionId> = rows.iter().filter_map(connection_of).map(ConnectionId::from).collect();
    let ids: Vec<&ConnectionId> = ids.iter().collect();
    let found =
        [writer.rows().open_sessions(|_| true).unwrap(), writer.rows().finished_sessions(&ids).unwrap()].concat();
    let count = found.len();
    let found: BTreeMap<_, _> = found.into_iter().map(|held| (held.row.connection_id.to_string(), held.row)).collect();
    assert_eq!(found.len(), count, "a session occurs twice");
    found
}

fn expected(rows: &[EventRow]) -> BTreeMap<String, SessionRow> {
    let mut events: HashMap<&str, Vec<&EventRow>> = HashMap::new();
    for row in rows {
        if let Some(id) = connection_of(row) {
            events.entry(id).or_default().push(row);
        }
    }
    events.into_iter().map(|(id, events)| (id.to_owned(), session_of(&events).unwrap())).collect()
}

/// An event: connection, kind, hours since September, whether it changes an earlier event, and its commit.
type PlannedEvent = (u64, usize, u64, bool, usize);

/// A commit: whether a new process makes it, whether each of its windows becomes a file, whether it defers its sessions, how
/// many earlier events it catches up, and how many events are caught up after it.
type PlannedCommit = (bool, bool, bool, Option<u64>, Option<u64>);

fn history() -> impl Strategy<Value = (Vec<PlannedEvent>, Vec<PlannedCommit>)> {
    let event = (0..9u64, 0..6usize, 0..2_000u64, proptest::bool::weighted(0.1), 0..6usize);
    let chunk = || proptest::option::of(1..20u64);
    (vec(event, 1..60), vec((any::<bool>(), any::<bool>(), any::<bool>(), chunk(), chunk()), 6))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// For any order of events in commits, in one process or several, the sessions match the archived events: at
    /// once, or after the catch-up if they were deferred.
    #[test]
    fn sessions_match_the_events_after_every_commit((events, commits) in history()) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let start = at("2026-09-01T00:00:00Z");
        let mut archived: Vec<EventRow> = Vec::new();
        let (archive, mut writer) = open(&store);
        let is_whole = |writer: &TeamWriter| writer.state().sessions.is_none_or(|mark| mark.through.is_none());
        for (number, (forget, compact, is_deferred, within, after)) in commits.into_iter().enumerate() {
            let mut rows = Vec::new();
            for (place, (connection, kind, hours, changes, commit)) in events.iter().enumerate() {
                if *commit != number {
                    continue;
                }
                let time = start.plus(Duration::from_secs(hours * 3_600 + place as u64));
                let earlier = archived.iter().find(|row| *changes && row.time < time && row.revision == 1);
                let known = earlier.map(|row| row.event_id.to_string());
                let row = event(&known.clone().unwrap_or(format!("e{place}")), *connection, *kind, time);
                rows.push(EventRow { revision: 1 + u32::from(known.is_some()), ..row });
            }
            if forget {
                drop(writer);
                writer = archive.writer(&TeamId::from("t")).unwrap();
            }
            let mut draft = draft(&rows, compact);
            if let Some(events) = within.filter(|_| !is_whole(&writer)) {
                let (sessions, _) = Chunk::of_events(writer.state(), events).make(writer.rows(), at(NOW)).unwrap();
                draft.sessions = Some(sessions);
            }
            match is_deferred {
                true => defer_sessions(&mut draft, &writer),
                false => correlate(&mut draft, &mut writer, at(NOW)).unwrap(),
            }
            let _ = writer.commit(draft, at(NOW)).unwrap();
            archived.extend(rows);
            if let Some(events) = after.filter(|_| !is_whole(&writer)) {
                let _ = Chunk::of_events(writer.state(), events).commit(&mut writer, at(NOW), at(NOW)).unwrap();
            }
            if is_whole(&writer) {
                prop_assert_eq!(held(&mut writer, &archived), expected(&archived));
            }
        }
        while !is_whole(&writer) {
            let _ = Chunk::of_events(writer.state(), 7).commit(&mut writer, at(NOW), at(NOW)).unwrap();
        }
        prop_assert_eq!(held(&mut writer, &archived), expected(&archived));
        let report = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.faults);
    }
}

#[test]
fn newer_sessions_do_not_finish_those_of_a_backfill() {
    let (_, mut writer) = open(&(Arc::new(MemoryStore::new()) as Arc<dyn Store>));
    let mut newest = draft(&[event("newest", 1_000, 1, at("2026-11-19T00:00:00Z"))], true);
    correlate(&mut newest, &mut writer, at(NOW)).unwrap();
    let _ = writer.commit(newest, at(NOW)).unwrap();
    let established =
        |n: u32| event(&format!("e{n}"), u64::from(n) + 1, 1, at("2026-09-01T00:00:00Z").plus(DAY / 10 * n));
    let mut backfill = draft(&(0..100).map(established).collect::<Vec<_>>(), true);
    defer_sessions(&mut backfill, &writer);
    let _ = writer.commit(backfill, at(NOW)).unwrap();
    for made in [10, 20, 30] {
        let _ = Chunk::of_events(writer.state(), 10).commit(&mut writer, at(NOW), at(NOW)).unwrap();
        assert_eq!(writer.rows().open_sessions(|_| true).unwrap().len(), made + 1, "each session can still end");
    }
    let _ = Chunk::of_events(writer.state(), 1_000).commit(&mut writer, at(NOW), at(NOW)).unwrap();
    assert_eq!(
        writer.rows().open_sessions(|_| true).unwrap().len(),
        1,
        "only the newest session has begun in the last 30 days"
    );
}

/// 120,000 events of forty days, in an archive without sessions.
fn old_archive(store: &Arc<dyn Store>) -> Vec<EventRow> {
    let start = at("2026-10-01T00:00:00Z");
    let one = |n: u64| {
        // Some connections last for weeks, and one event in a hundred has no connection.
        let connection = if n.is_multiple_of(100) {
            0
        } else if n % 50 == 1 {
            1 + n % 97
        } else {
            1_000 + n / 4
        };
        event(
            &format!("e{n}"),
            connection,
            usize::try_from(n % 5).unwrap(),
            start.plus(Duration::from_millis(n * 28_800)),
        )
    };
    let rows: Vec<EventRow> = (0..120_000).map(one).collect();
    let (_, mut writer) = open(store);
    let _ = writer.commit(draft(&rows, true), at(NOW)).unwrap();
    assert_eq!(writer.state().sessions, None);
    rows
}

#[tokio::test]
async fn an_archive_without_sessions_gets_them_in_the_next_round() {
    let world = World::new(NOW);
    let rows = old_archive(&world.store);
    let settings = settings_of();
    world.sync(&settings).await;
    let (_, mut writer) = open(&world.store);
    let made = held(&mut writer, &rows);
    assert_eq!(made.len(), expected(&rows).len());
    assert!(made == expected(&rows), "sessions made at once differ from those made event by event");
    let mark = writer.state().sessions.unwrap();
    assert_eq!(mark.through, None);
    let finding = |finding: &&annals::archive::Finding| finding.kind == annals::archive::FindingKind::NoConnectionId;
    let counted: u64 = writer.state().findings.iter().map(|(_, f)| f).filter(finding).map(|f| f.count).sum();
    assert_eq!(counted, 1_200);
    drop(writer);
    let seq = world.state().seq;
    world.sync(&settings).await;
    assert_eq!(world.state().seq, seq, "existing sessions are not made again");
}

#[tokio::test]
async fn an_interrupted_rebuild_continues() {
    let disk = MemoryStore::new();
    let rows = old_archive(&(Arc::new(disk.clone()) as Arc<dyn Store>));
    let settings = settings_of();
    let mut stood = Vec::new();
    for verb in (0..600).step_by(60) {
        let mut world = World::new(NOW);
        let faulty = FaultyStore::new(Arc::new(disk.clone()), verb, true, Fault::Failed);
        Arc::get_mut(&mut world).unwrap().store = Arc::new(faulty);
        let attempt = world.clone();
        let _ = tokio::spawn(async move { attempt.round(&settings_of()).await }).await;
        let archive = Archive::open(Arc::new(disk.snapshot())).unwrap();
        stood.push(archive.read(&TeamId::from("t")).unwrap().state().sessions);
    }
    assert!(stood.iter().any(|mark| mark.is_some_and(|mark| mark.through.is_some())), "never in the middle: {stood:?}");
    let mut world = World::new(NOW);
    Arc::get_mut(&mut world).unwrap().store = Arc::new(disk.clone());
    world.sync(&settings).await;
    let (_, mut writer) = open(&world.store);
    assert!(held(&mut writer, &rows) == expected(&rows));
    assert!(verify(world.store.as_ref(), &VerifyOptions::default()).unwrap().is_clean());
}

/// A team with three months of events, read at once.
fn backfilled() -> (Arc<World>, Settings) {
    let world = World::new(NOW);
    let start = at("2026-08-25T00:00:00Z");
    let events = (0..150_000u64).map(|n| {
        let (id, connection, kind) = (format!("e{n}"), n / 4, KINDS[usize::try_from(n % 5).unwrap()]);
        let text = format!(r#"{{"id":"{id}","deviceID":"d1","{kind}":{{"connectionID":"c{connection}"}}}}"#);
        let time = ServedTime::At(start.plus(Duration::from_millis(n * 48_000)));
        RawEvent::new(text.into(), false, Some(EventId::from(id.as_str())), time)
    });
    world.team().connections.extend(events);
    (world, Settings { since: Some(start), ..Settings::default() })
}

fn archived(store: &Arc<dyn Store>) -> Vec<EventRow> {
    let (archive, writer) = open(store);
    drop(writer);
    let mut rows = Vec::new();
    let mut take = |row: EventRow| {
        rows.push(row);
        Ok(())
    };
    let all = Range::new(Instant::EARLIEST, Instant::LATEST);
    archive.read(&TeamId::from("t")).unwrap().rows().rows_in(Stream::Connections, all, &mut take).unwrap();
    rows
}

/// The ledger's lines, in order.
fn bodies(store: &dyn Store) -> Vec<serde_json::Value> {
    let days = store.list("ledger/team=t").unwrap();
    let texts = days.iter().filter(|day| day.path.ends_with(".jsonl")).map(|day| store.read(&day.path).unwrap());
    let texts: Vec<_> = texts.map(|text| text.to_bytes().unwrap()).collect();
    let lines = texts.iter().flat_map(|text| std::str::from_utf8(text).unwrap().lines());
    lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["body"].clone()).collect()
}

#[tokio::test]
async fn a_running_backfill_seals_months_and_loses_no_session() {
    let (world, settings) = backfilled();
    world.sync(&settings).await;
    let bodies = bodies(world.store.as_ref());
    let first_sealed = bodies.iter().position(|body| body["sealed_months"].is_array()).unwrap();
    let last_read = bodies.iter().rposition(|body| body["windows"].is_array()).unwrap();
    assert!(first_sealed < last_read, "{first_sealed} {last_read}");
    let sealed = world.state().sealed_months;
    assert_eq!(sealed.iter().filter(|(stream, _)| *stream == Stream::Connections).count(), 3, "{sealed:?}");
    let rows = archived(&world.store);
    assert_eq!(rows.len(), 150_000);
    let (_, mut writer) = open(&world.store);
    assert!(held(&mut writer, &rows) == expected(&rows));
    drop(writer);
    assert!(verify(world.store.as_ref(), &VerifyOptions::default()).unwrap().is_clean());
}

#[tokio::test]
async fn a_month_that_cannot_be_sealed_blocks_no_event() {
    let (world, settings) = backfilled();
    let store = world.store.clone();
    let mut is_whole = true;
    world.on_ask(move |_, _| {
        let listed = store.list("tables/connections/team=t/month=2026-08").unwrap();
        if let Some(file) = listed.first().filter(|_| is_whole) {
            is_whole = false;
            // The middle of the file holds the events' text, which sessions do not need.
            let mut bytes = store.read(&file.path).unwrap().to_bytes().unwrap().to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            store.remove(&[&file.path]).unwrap();
            let mut damaged = store.create().unwrap();
            damaged.write_all(&bytes).unwrap();
            damaged.finish(&file.path).unwrap();
        }
        None
    });
    let failures = format!("{:?}", world.round(&settings).await.failures);
    assert!(failures.contains("ReadBack"), "{failures}");
    let state = world.state();
    let rows: u64 = state.files_of(Dataset::Connections).map(|file| file.rows).sum();
    assert_eq!(
        (rows, state.sealed_months.contains(&(Stream::Connections, at("2026-08-01T00:00:00Z")))),
        (150_000, false)
    );
}

#[tokio::test]
async fn sessions_that_cannot_be_read_block_no_event() {
    let (world, settings) = backfilled();
    let store = world.store.clone();
    let mut is_whole = true;
    world.on_ask(move |_, _| {
        let listed = store.list("tables/sessions/team=t").unwrap();
        if let Some(file) = listed.iter().find(|file| is_whole && file.path.contains("-open-")) {
            is_whole = false;
            store.remove(&[&file.path]).unwrap();
            let mut damaged = store.create().unwrap();
            damaged.write_all(&vec![0; usize::try_from(file.bytes).unwrap()]).unwrap();
            damaged.finish(&file.path).unwrap();
        }
        None
    });
    let rows = |world: &World| world.state().files_of(Dataset::Connections).map(|file| file.rows).sum::<u64>();
    let mut archived = 0;
    while archived < 150_000 {
        let failures = format!("{:?}", world.round(&settings).await.failures);
        assert!(failures.contains("-open-"), "{failures}");
        let before = std::mem::replace(&mut archived, rows(&world));
        assert!(before < archived, "a round archived nothing after {before} events");
    }
}

fn settings_of() -> Settings {
    Settings { since: Some(at("2026-11-18T00:00:00Z")), ..Settings::default() }
}

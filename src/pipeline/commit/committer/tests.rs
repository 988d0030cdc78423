use futures::future::{Either, select};
use futures::{FutureExt, join};
use tokio::task::yield_now;

use super::*;
use crate::api::{HttpOptions, HttpSource, TokenSource};
use crate::archive::{Archive, TeamState};
use crate::clock::{Clock, SystemClock};
use crate::collect::CountedEvent;
use crate::model::{EventId, Instant, RawEvent, ServedTime, TeamId};
use crate::pipeline::commit::inbox::MESSAGES_WAITING_MAX;
use crate::pipeline::commit::{StreamChange, WindowChange, channel};
use crate::pipeline::progress::NoProgress;
use crate::pipeline::settings::{COMMIT_EVENTS_MIN, HELD_EVENTS_MAX, RESCAN_EVENTS_MAX, Settings};
use crate::pipeline::team::{Edges, EventBudget};
use crate::simulation::virtual_clock::VirtualClock;
use crate::store::{Fault, FaultyStore, MemoryStore, Store};
use crate::threads::Workers;

const STREAM: Stream = Stream::Activity;

fn edges(store: Arc<dyn Store>) -> Arc<TeamEdges> {
    // The stage sends no requests.
    let service = HttpOptions::new("http://127.0.0.1:1", TokenSource::Fixed("unused".to_owned().into()));
    let edges = Edges {
        source: Arc::new(HttpSource::new(service).unwrap()),
        archive: Arc::new(Archive::open_or_create(store, || "test".to_owned()).unwrap()),
        // A commit also begins when an event has waited long, so real time must not pass.
        clock: VirtualClock::at("2026-12-01T00:00:00Z".parse().unwrap()),
        settings: Arc::new(Settings::default()),
        workers: Workers::Inline,
        progress: Arc::new(NoProgress),
    };
    let open = TeamEdges::open(edges, TeamId::from("t"), EventBudget::new(0));
    Arc::new(futures::executor::block_on(open).unwrap())
}

/// Whether the smallest budget has room for its only reading.
fn is_free(edges: &TeamEdges) -> bool {
    edges.budget.try_reserve(RESCAN_EVENTS_MAX).is_some()
}

/// A day that was read completely, with this number of events, and the room for them.
fn day(number: u64, events: usize, edges: &TeamEdges) -> Batch {
    day_of_texts(number, events, "", edges)
}

/// The same, with this padding in each event's text.
fn day_of_texts(number: u64, events: usize, padding: &str, edges: &TeamEdges) -> Batch {
    let start: Instant = "2026-11-03T00:00:00Z".parse().unwrap();
    let start = start.plus(Duration::from_secs(number * 86_400));
    let window = edges.settings.grid.window_of(start);
    let event = |n: u64| {
        let text = format!(r#"{{"id":"{number}-{n}","teamUserAddedEvent":{{}}}}{padding}"#);
        let time = ServedTime::At(start.plus(Duration::from_nanos(n)));
        let id = EventId::from(format!("{number}-{n}").as_str());
        let event = RawEvent::new(text.into(), false, Some(id), time);
        CountedEvent { event: RawEvent { is_json: true, ..event }, count: 1 }
    };
    let mut change = WindowChange::new(STREAM, window, window.end.plus(Duration::from_secs(3_600)));
    change.confirmed = Some(window);
    let mut batch = Batch::default();
    batch.changes.push(change);
    (0..events as u64).map(event).for_each(|event| batch.add_event(STREAM, Some(window), event));
    batch.within(edges.budget.try_reserve(events.min(1_000)).unwrap())
}

/// A round does not poll its readings while it waits for this stage.
#[tokio::test]
async fn a_reading_that_is_not_polled_does_not_keep_the_writer() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let threads = Edges { workers: Workers::Threads, ..edges.edges.clone() };
    let edges = TeamEdges::open(threads, TeamId::from("other"), EventBudget::new(0)).await.unwrap();
    let commit = edges.writer().await;
    let mut reading = Box::pin(edges.with_writer(|writer| Ok(writer.state().seq)));
    assert!((&mut reading).now_or_never().is_none(), "it waits for the commit");
    drop(commit);
    let next = Box::pin(edges.with_state(|state| state.seq));
    let clock = SystemClock::new();
    let ended = select(next, clock.sleep(Duration::from_secs(60))).await;
    assert!(matches!(ended, Either::Left(_)), "the reading keeps the writer");
    assert!(reading.await.is_ok());
}

#[tokio::test]
async fn enough_events_are_committed_at_once_and_the_rest_on_request() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let (inbox, messages) = channel(edges.team.clone());
    let send = async {
        inbox.add(day(0, 3, &edges)).await.unwrap();
        yield_now().await;
        assert_eq!(edges.with_state(|state| state.windows.len()).await, 0, "too few for a commit");
        inbox.add(day(1, COMMIT_EVENTS_MAX, &edges)).await.unwrap();
        yield_now().await;
        assert_eq!(edges.with_state(|state| state.windows.len()).await, 2);
        inbox.add(day(2, 5, &edges)).await.unwrap();
        inbox.commit().await.unwrap();
        assert_eq!(edges.with_state(|state| state.windows.len()).await, 3);
        drop(inbox);
    };
    let ((), ended) = join!(send, Committer::new(edges.clone()).run(messages));
    assert!(ended.error.is_none(), "{:?}", ended.error);
    assert_eq!((ended.committed.rows, ended.committed.commits), (COMMIT_EVENTS_MAX as u64 + 8, 2));
    assert!(is_free(&edges), "the room is free when the events are committed");
}

#[tokio::test]
async fn everything_is_committed_when_a_reading_waits_for_room() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let (inbox, messages) = channel(edges.team.clone());
    let send = async {
        let waits = edges.budget.waits();
        for number in [0, 1] {
            inbox.add(day(number, 3, &edges)).await.unwrap();
            yield_now().await;
            let windows = edges.with_state(|state| state.windows.len() as u64).await;
            assert_eq!(windows, number + 1, "the stage commits everything while a reading waits for room");
        }
        drop(waits);
        drop(inbox);
    };
    let ((), ended) = join!(Box::pin(send), Committer::new(edges.clone()).run(messages));
    assert_eq!((ended.committed.rows, ended.committed.commits), (6, 2));
}

#[tokio::test]
async fn a_reading_waits_while_the_stage_takes_nothing() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let (inbox, messages) = channel(edges.team.clone());
    for _ in 0..MESSAGES_WAITING_MAX {
        assert!(inbox.add(day(0, 3, &edges)).now_or_never().is_some());
    }
    assert!(inbox.add(day(1, 3, &edges)).now_or_never().is_none());
    drop(messages);
    assert!(inbox.add(day(2, 3, &edges)).await.is_err(), "the stage has ended");
    assert!(inbox.commit().await.is_err());
}

#[tokio::test]
async fn a_failed_commit_ends_the_stage_and_frees_the_room() {
    let opening = FaultyStore::new(Arc::new(MemoryStore::new()), u64::MAX, false, Fault::Failed);
    drop(edges(Arc::new(opening.clone())));
    let faulty = FaultyStore::new(Arc::new(MemoryStore::new()), opening.verbs(), true, Fault::FailedUndone);
    let edges = edges(Arc::new(faulty));
    let (inbox, messages) = channel(edges.team.clone());
    let send = async {
        inbox.add(day(0, 3, &edges)).await.unwrap();
        assert!(matches!(inbox.commit().await, Err(ArchiveError::Poisoned { .. })));
        assert!(inbox.add(day(1, 3, &edges)).await.is_err(), "the stage accepts no further message");
    };
    let ((), ended) = join!(send, Committer::new(edges.clone()).run(messages));
    assert!(matches!(ended.error, Some(ArchiveError::Store(_))), "{:?}", ended.error);
    assert_eq!((ended.committed.commits, ended.read_points.len()), (0, 0));
    assert!(is_free(&edges));
}

#[test]
fn windows_read_in_part_are_held_until_the_batch_is_too_large() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let state = TeamState::genesis("a", TeamId::from("t"));
    let whole = |number, events| day(number, events, &edges);
    let partial = |number, events| {
        let mut batch = whole(number, events);
        batch.changes[0].confirmed = batch.changes[0].window.halves().map(|(first, _)| first);
        batch
    };
    let mut batch = partial(0, 10);
    batch.join(whole(1, COMMIT_EVENTS_MIN));
    let ready = batch.take_ready(&state).unwrap();
    assert_eq!((ready.size(), batch.size()), (COMMIT_EVENTS_MIN, 10));
    assert_eq!((ready.changes.len(), batch.changes.len()), (1, 1));
    assert!(batch.take_ready(&state).is_none(), "too few for a commit");
    batch.join(partial(0, HELD_EVENTS_MAX));
    batch.join(whole(1, 5));
    let ready = batch.take_ready(&state).unwrap();
    assert_eq!((ready.size(), batch.size()), (5, HELD_EVENTS_MAX + 10), "a part would be written twice");
    assert_eq!(batch.take_ready(&state).unwrap().size(), HELD_EVENTS_MAX + 10, "no more may be held");
    let mut batch = partial(0, 10);
    batch.join(whole(1, COMMIT_EVENTS_MIN));
    batch.streams.push((STREAM, StreamChange::default()));
    let all = batch.take_ready(&state).unwrap();
    assert_eq!(all.size(), COMMIT_EVENTS_MIN + 10, "the stream's change may vouch for the first window");
}

#[test]
fn a_large_event_counts_as_several() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let state = TeamState::genesis("a", TeamId::from("t"));
    let mut batch = day_of_texts(0, COMMIT_EVENTS_MIN / 100, &" ".repeat(100 << 10), &edges);
    assert_eq!(batch.size(), COMMIT_EVENTS_MIN / 100 * 101);
    assert!(batch.take_ready(&state).is_some() && batch.size() == 0);
}

/// A backfill of a quiet team has many windows and few events.
#[tokio::test]
async fn many_windows_without_events_are_committed_in_parts() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let (inbox, messages) = channel(edges.team.clone());
    let send = async {
        for part in [0..10, 10..COMMIT_WINDOWS_MAX as u64, COMMIT_WINDOWS_MAX as u64..COMMIT_WINDOWS_MAX as u64 + 10] {
            let mut batch = Batch::default();
            part.for_each(|number| batch.join(day(number, 0, &edges)));
            inbox.add(batch).await.unwrap();
        }
        drop(inbox);
    };
    let ((), ended) = join!(send, Committer::new(edges.clone()).run(messages));
    assert!(ended.error.is_none(), "{:?}", ended.error);
    assert_eq!((ended.committed.commits, edges.with_state(|state| state.windows.len()).await), (1, COMMIT_WINDOWS_MAX));
}

use futures::{FutureExt, join};
use parking_lot::Mutex;

use super::*;
use crate::archive::{Archive, TeamState};
use crate::clock::SystemClock;
use crate::collect::CountedEvent;
use crate::model::{EventId, Instant, RawEvent, ServedTime, TeamId};
use crate::pipeline::commit::inbox::MESSAGES_WAITING_MAX;
use crate::pipeline::commit::{Inbox, StreamChange, WindowChange, channel};
use crate::pipeline::progress::NoProgress;
use crate::pipeline::settings::{COMMIT_EVENTS_MIN, HELD_EVENTS_MAX, Settings};
use crate::pipeline::team::{EventBudget, TeamMemory};
use crate::store::{Fault, FaultyStore, MemoryStore, Store};
use crate::threads::Workers;

const STREAM: Stream = Stream::Activity;

fn edges(store: Arc<dyn Store>) -> Arc<TeamEdges> {
    let (team, clock) = (TeamId::from("t"), Arc::new(SystemClock::new()));
    let archive = Archive::open_or_create(store, || "test".to_owned()).unwrap();
    let writer = archive.writer(&team).unwrap();
    Arc::new(TeamEdges {
        writer: Arc::new(Mutex::new(writer)),
        team,
        settings: Arc::new(Settings::default()),
        workers: Workers::Inline,
        progress: Arc::new(NoProgress),
        budget: EventBudget::new(0),
        memory: Arc::new(TeamMemory::new(clock.clone())),
        clock,
        time_limit: None,
    })
}

/// A day that was read completely, with this number of events, and the room for them.
fn day(number: u64, events: usize, edges: &TeamEdges) -> (Batch, Permit) {
    let start: Instant = "2026-11-03T00:00:00Z".parse().unwrap();
    let start = start.plus(Duration::from_secs(number * 86_400));
    let window = edges.settings.grid.window_of(start);
    let event = |n: u64| {
        let text = format!(r#"{{"id":"{number}-{n}","teamUserAddedEvent":{{}}}}"#);
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
    (batch, edges.budget.try_reserve(events.min(1_000)).unwrap())
}

async fn add(inbox: &Inbox, (batch, permit): (Batch, Permit)) -> Result<(), ArchiveError> {
    inbox.add(batch, permit).await
}

#[tokio::test]
async fn enough_events_are_committed_at_once_and_the_rest_on_request() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let (inbox, messages) = channel(edges.team.clone());
    let send = async {
        add(&inbox, day(0, 3, &edges)).await.unwrap();
        inbox.catch_up().await.unwrap();
        assert_eq!(edges.with_state(|state| state.windows.len()), 0, "too few for a commit");
        add(&inbox, day(1, COMMIT_EVENTS_MAX, &edges)).await.unwrap();
        inbox.catch_up().await.unwrap();
        assert_eq!(edges.with_state(|state| state.windows.len()), 2);
        add(&inbox, day(2, 5, &edges)).await.unwrap();
        inbox.commit().await.unwrap();
        assert_eq!(edges.with_state(|state| state.windows.len()), 3);
        drop(inbox);
    };
    let ((), ended) = join!(send, Committer::new(edges.clone()).run(messages));
    assert!(ended.error.is_none(), "{:?}", ended.error);
    assert_eq!((ended.committed.rows, ended.committed.commits), (COMMIT_EVENTS_MAX as u64 + 8, 2));
    assert!(edges.budget.is_free(), "the room is free when the events are committed");
}

#[tokio::test]
async fn everything_is_committed_when_a_reading_waits_for_room() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let (inbox, messages) = channel(edges.team.clone());
    let send = async {
        let waits = edges.budget.waits();
        for number in [0, 1] {
            add(&inbox, day(number, 3, &edges)).await.unwrap();
            inbox.catch_up().await.unwrap();
            let windows = edges.with_state(|state| state.windows.len() as u64);
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
        assert!(add(&inbox, day(0, 3, &edges)).now_or_never().is_some());
    }
    assert!(add(&inbox, day(1, 3, &edges)).now_or_never().is_none());
    drop(messages);
    assert!(add(&inbox, day(2, 3, &edges)).await.is_err(), "the stage has ended");
    assert!(inbox.commit().await.is_err() && inbox.catch_up().await.is_err());
}

#[tokio::test]
async fn a_failed_commit_ends_the_stage_and_frees_the_room() {
    let opening = FaultyStore::new(Arc::new(MemoryStore::new()), u64::MAX, false, Fault::Failed);
    drop(edges(Arc::new(opening.clone())));
    let faulty = FaultyStore::new(Arc::new(MemoryStore::new()), opening.verbs(), true, Fault::FailedUndone);
    let edges = edges(Arc::new(faulty));
    let (inbox, messages) = channel(edges.team.clone());
    let send = async {
        add(&inbox, day(0, 3, &edges)).await.unwrap();
        assert!(matches!(inbox.commit().await, Err(ArchiveError::Poisoned { .. })));
        assert!(add(&inbox, day(1, 3, &edges)).await.is_err(), "the stage accepts no further message");
    };
    let ((), ended) = join!(send, Committer::new(edges.clone()).run(messages));
    assert!(matches!(ended.error, Some(ArchiveError::Store(_))), "{:?}", ended.error);
    assert_eq!((ended.committed.commits, ended.read_points.len()), (0, 0));
    assert!(edges.budget.is_free());
}

#[test]
fn windows_read_in_part_are_held_until_the_batch_is_too_large() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let state = TeamState::genesis("a", TeamId::from("t"));
    let whole = |number, events| day(number, events, &edges).0;
    let partial = |number, events| {
        let mut batch = whole(number, events);
        batch.changes[0].confirmed = batch.changes[0].window.halves().map(|(first, _)| first);
        batch
    };
    let mut batch = partial(0, 10);
    batch.join(whole(1, COMMIT_EVENTS_MIN));
    let ready = batch.take_ready(&state).unwrap();
    assert_eq!((ready.held_events(), batch.held_events()), (COMMIT_EVENTS_MIN, 10));
    assert_eq!((ready.changes.len(), batch.changes.len()), (1, 1));
    assert!(batch.take_ready(&state).is_none(), "too few for a commit");
    batch.join(partial(0, HELD_EVENTS_MAX));
    assert_eq!(batch.take_ready(&state).unwrap().held_events(), HELD_EVENTS_MAX + 10, "no more may be held");
    let mut batch = partial(0, 10);
    batch.join(whole(1, COMMIT_EVENTS_MIN));
    batch.change_stream(STREAM, StreamChange::default(), true);
    let all = batch.take_ready(&state).unwrap();
    assert_eq!(all.held_events(), COMMIT_EVENTS_MIN + 10, "the stream's change may vouch for the first window");
}

/// A backfill of a quiet team has many windows and few events.
#[tokio::test]
async fn many_windows_without_events_are_committed_in_parts() {
    let edges = edges(Arc::new(MemoryStore::new()));
    let (inbox, messages) = channel(edges.team.clone());
    let send = async {
        for part in [0..10, 10..COMMIT_WINDOWS_MAX as u64, COMMIT_WINDOWS_MAX as u64..COMMIT_WINDOWS_MAX as u64 + 10] {
            let mut batch = Batch::default();
            part.for_each(|number| batch.join(day(number, 0, &edges).0));
            add(&inbox, (batch, edges.budget.nothing())).await.unwrap();
        }
        drop(inbox);
    };
    let ((), ended) = join!(send, Committer::new(edges.clone()).run(messages));
    assert!(ended.error.is_none(), "{:?}", ended.error);
    assert_eq!((ended.committed.commits, edges.with_state(|state| state.windows.len())), (1, COMMIT_WINDOWS_MAX));
}

//! What a round has read and not committed, and the work on it that is under way.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::archive::{ArchiveError, EncodedTable, EventColumns};

use crate::pipeline::commit::batch::{Batch, Place};
use crate::pipeline::commit::counts::Flushed;
use crate::pipeline::sessions::making::Made;
use crate::pipeline::settings::{COMMIT_EVENTS_MIN, HELD_EVENTS_MAX};
use crate::pipeline::team::budget::Share;
use crate::pipeline::team::context::TeamContext;
use crate::pipeline::workers::{Work, Workers};

/// What a commit brought, and how long it took.
pub type Committed = Result<(Flushed, Duration), ArchiveError>;

/// What was read and is not committed.
pub struct Waiting {
    pub batch: Batch,
    /// The room that the batch's events take.
    pub share: Share,
    /// There is one at a time: commits follow one another.
    pub under_way: Option<UnderWay>,
    /// Sessions that commits of this round left to be made.
    pub making: Option<Work<Made>>,
    /// Files of windows of the batch, encoded while others are read: a commit then has less to do while others wait for it.
    encoding: Vec<Encoding>,
    /// When nothing was held back last.
    pub emptied_at: Duration,
}

/// A commit under way.
pub struct UnderWay {
    /// Those that were not encoded before.
    pub events: usize,
    pub end: JoinHandle<Committed>,
}

/// Windows that are being encoded.
struct Encoding {
    places: Vec<Place>,
    work: Work<Vec<(Place, EncodedTable)>>,
}

impl Waiting {
    /// Nothing, as of now; `share` is one of nothing.
    pub fn new(share: Share, emptied_at: Duration) -> Self {
        Self { batch: Batch::default(), share, under_way: None, making: None, encoding: Vec::new(), emptied_at }
    }

    /// Adds to the batch what `share` has room for.
    pub fn add(&mut self, share: Share, add: impl FnOnce(&mut Batch)) {
        add(&mut self.batch);
        self.share.join(share);
        self.share.hold(self.batch.held_events(), false);
    }

    /// Begins to encode the windows that have become whole.
    pub fn encode(&mut self, workers: Workers) {
        let whole = self.batch.take_whole();
        if !whole.is_empty() {
            let places = whole.iter().map(|(place, _)| *place).collect();
            self.encoding.push(Encoding { places, work: workers.begin(move || encoded(whole)) });
        }
    }

    /// Sessions that commits left to be made, where they are by now.
    pub async fn made(&mut self) -> Option<Made> {
        Some(self.making.take_if(|making| making.is_done())?.end().await)
    }

    /// The windows that are being encoded.
    pub fn busy(&self) -> BTreeSet<Place> {
        self.encoding.iter().flat_map(|encoding| &encoding.places).copied().collect()
    }

    /// Takes over what is encoded, and with `waits` all that is being encoded.
    pub async fn keep_encoded(&mut self, waits: bool) {
        for encoding in std::mem::take(&mut self.encoding) {
            match waits || encoding.work.is_done() {
                true => self.batch.encoded.extend(encoding.work.end().await),
                false => self.encoding.push(encoding),
            }
        }
    }
}

impl TeamContext {
    /// As much of the batch as is worth a commit; windows that are being encoded wait for the next one, unless no more may
    /// be held.
    pub async fn ready(&self, waiting: &mut Waiting) -> Option<Batch> {
        waiting.keep_encoded(false).await;
        let take = |waiting: &mut Waiting, is_full: bool| {
            let busy = waiting.busy();
            let ready = self.with_state(|state| waiting.batch.take_ready(state, &busy, is_full));
            if ready.held_events() < COMMIT_EVENTS_MIN {
                waiting.batch.join(ready);
                return None;
            }
            Some(ready)
        };
        let ready = take(waiting, false);
        if ready.is_some() || waiting.batch.held_events() < HELD_EVENTS_MAX {
            return ready;
        }
        waiting.keep_encoded(true).await;
        Some(take(waiting, true).unwrap_or_else(|| std::mem::take(&mut waiting.batch)))
    }
}

/// What fails here is tried again in the commit, which ends should it fail there, too.
fn encoded(whole: Vec<(Place, Vec<EventColumns>)>) -> Vec<(Place, EncodedTable)> {
    let table = |(place, columns): (Place, Vec<EventColumns>)| {
        let made = EncodedTable::of_window(columns).inspect_err(|error| {
            let (stream, window) = place;
            tracing::warn!(%stream, %window, %error, "encoding failed; the commit tries it again");
        });
        Some((place, made.ok()??))
    };
    whole.into_iter().filter_map(table).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::Sender;

    use super::*;
    use crate::archive::{Archive, MemoryStore, TeamState};
    use crate::collect::Counted;
    use crate::model::{EventId, Instant, Range, RawEvent, ServedTime, Stream, TeamId};
    use crate::pipeline::commit::change::{StreamChange, WindowChange};
    use crate::pipeline::commit::flush::prepare;
    use crate::pipeline::commit::piece::Piece;
    use crate::pipeline::settings::{COMMIT_EVENTS_MIN, Settings};
    use crate::pipeline::team::budget::Budget;

    const STREAM: Stream = Stream::Connections;
    const EVENTS: usize = 8;

    fn at(hour: i64) -> Instant {
        let start: Instant = "2026-11-03T00:00:00Z".parse().unwrap();
        Instant::from_nanos(start.nanos() + hour * 3_600_000_000_000)
    }

    fn window() -> Range {
        Range::new(at(0), at(24))
    }

    /// Some events of an hour.
    fn piece(hour: i64, with_columns: bool) -> Piece {
        events_of(hour, EVENTS, with_columns)
    }

    fn events_of(hour: i64, count: usize, with_columns: bool) -> Piece {
        let event = |n: usize| {
            let time = at(hour).plus(Duration::from_nanos(n as u64));
            let id = format!("e{hour}-{n}");
            let text = format!(r#"{{"id":"{id}","connectionClosedEvent":{{"connectionID":"c"}}}}"#);
            let event = RawEvent::new(text.into(), false, Some(EventId::from(id.as_str())), ServedTime::At(time));
            Counted { event: RawEvent { is_json: true, ..event }, count: 1 }
        };
        let mut piece = Piece::from((0..count).map(event).collect::<Vec<_>>());
        if with_columns {
            piece.make_columns(&TeamId::from("t"), STREAM, at(30));
        }
        piece
    }

    fn read(waiting: &mut Waiting, hours: (i64, i64), piece: Piece) {
        read_of(waiting, window(), hours, piece);
    }

    /// Reads hours of a window.
    fn read_of(waiting: &mut Waiting, window: Range, hours: (i64, i64), piece: Piece) {
        let mut change = WindowChange::new(STREAM, window, at(30));
        change.confirmed = Some(Range::new(at(hours.0), at(hours.1)));
        waiting.batch.add_change(change);
        waiting.batch.add_events(STREAM, Some(window), piece);
        waiting.encode(Workers::Inline);
    }

    async fn rows_encoded(waiting: &mut Waiting) -> Option<u64> {
        waiting.keep_encoded(false).await;
        assert!(waiting.busy().is_empty());
        waiting.batch.encoded.get(&(STREAM, window())).map(EncodedTable::rows)
    }

    #[tokio::test]
    async fn a_window_is_encoded_once_it_is_read_whole_and_committed_as_that_file() {
        let mut waiting = Waiting::new(Budget::new(0).nothing(), Duration::ZERO);
        // In any order, and whatever stands in them.
        for (hours, expected) in [((12, 24), None), ((0, 6), None), ((6, 12), Some(3 * EVENTS as u64))] {
            read(&mut waiting, hours, piece(hours.0, true));
            assert_eq!(rows_encoded(&mut waiting).await, expected, "{hours:?}");
        }
        let store = Arc::new(MemoryStore::new());
        let archive = Archive::open_or_create(store, || "test".to_owned()).unwrap();
        let writer = archive.writer(&TeamId::from("t")).unwrap();
        let batch = std::mem::take(&mut waiting.batch);
        let (draft, _) = prepare(batch, &writer, &Settings::default(), at(30)).unwrap();
        assert!(draft.rows[0].encoded.is_some() && draft.rows[0].compact);
    }

    #[tokio::test]
    async fn a_window_is_not_encoded_before_it_is_whole_nor_where_columns_are_missing_nor_kept_when_more_comes() {
        let mut waiting = Waiting::new(Budget::new(0).nothing(), Duration::ZERO);
        read(&mut waiting, (0, 12), piece(0, true));
        read(&mut waiting, (12, 24), piece(12, false));
        assert_eq!(rows_encoded(&mut waiting).await, None);
        let mut waiting = Waiting::new(Budget::new(0).nothing(), Duration::ZERO);
        read(&mut waiting, (0, 24), piece(0, true));
        assert_eq!(rows_encoded(&mut waiting).await, Some(EVENTS as u64));
        waiting.batch.add_events(STREAM, Some(window()), piece(1, true));
        assert_eq!(rows_encoded(&mut waiting).await, None);
    }

    #[tokio::test]
    async fn what_is_being_encoded_is_waited_for_where_that_is_asked() {
        let (mut waiting, end) = busy();
        waiting.keep_encoded(false).await;
        assert!(waiting.busy().contains(&(STREAM, window())) && waiting.batch.encoded.is_empty());
        end.send(()).unwrap();
        waiting.keep_encoded(true).await;
        assert!(waiting.busy().is_empty() && waiting.batch.encoded.len() == 1);
    }

    /// One window that is read whole and being encoded, until it is told to end.
    fn busy() -> (Waiting, Sender<()>) {
        let mut waiting = Waiting::new(Budget::new(0).nothing(), Duration::ZERO);
        read(&mut waiting, (0, 24), piece(0, true));
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let encoded = waiting.encoding.remove(0).work;
        let Work::Done(encoded) = encoded else { panic!("it is encoded in place") };
        let work = Workers::Threads.begin(move || {
            ended.recv().unwrap();
            encoded
        });
        waiting.encoding.push(Encoding { places: vec![(STREAM, window())], work });
        (waiting, end)
    }

    #[tokio::test]
    async fn a_window_that_is_being_encoded_waits_for_a_later_commit_and_is_encoded_once() {
        let state = TeamState::genesis("a", TeamId::from("t"));
        let (mut waiting, end) = busy();
        let take = |waiting: &mut Waiting, is_full: bool| {
            let busy = waiting.busy();
            waiting.batch.take_ready(&state, &busy, is_full).held_events()
        };
        assert_eq!(take(&mut waiting, false), 0, "too few besides");
        read_of(&mut waiting, Range::new(at(24), at(48)), (24, 48), events_of(24, COMMIT_EVENTS_MIN, true));
        waiting.keep_encoded(false).await;
        assert_eq!(waiting.batch.encoded.len(), 1);
        assert_eq!(take(&mut waiting, false), COMMIT_EVENTS_MIN, "the other is worth a commit");
        waiting.encode(Workers::Inline);
        assert_eq!((waiting.encoding.len(), waiting.batch.held_events()), (1, EVENTS));
        end.send(()).unwrap();
        waiting.keep_encoded(true).await;
        assert_eq!(waiting.batch.unencoded_events(), 0);
        assert_eq!(take(&mut waiting, true), EVENTS);
    }

    #[test]
    fn what_may_speak_of_windows_that_are_being_encoded_waits_with_them() {
        let state = TeamState::genesis("a", TeamId::from("t"));
        let mut waiting = Waiting::new(Budget::new(0).nothing(), Duration::ZERO);
        read_of(&mut waiting, Range::new(at(24), at(48)), (24, 48), events_of(24, COMMIT_EVENTS_MIN, true));
        waiting.batch.change_stream(STREAM, StreamChange::default());
        let busy = BTreeSet::from([(STREAM, window())]);
        assert_eq!(waiting.batch.take_ready(&state, &busy, true).held_events(), 0);
        assert_eq!(waiting.batch.take_ready(&state, &BTreeSet::new(), false).held_events(), COMMIT_EVENTS_MIN);
    }
}

//! Encodes windows that are read whole while others are read, so that their commit takes less time.

use std::collections::BTreeSet;

use crate::archive::{EncodedTable, EventColumns, Salts};
use crate::pipeline::commit::batch::Place;
use crate::pipeline::workers::{Work, Workers};

/// The files that windows become.
pub type Encoded = Vec<(Place, EncodedTable)>;

/// Takes the columns of whole windows, and gives the files that they become.
pub struct Encoder {
    workers: Workers,
    salts: Salts,
    under_way: Vec<Encoding>,
}

/// Windows that are being encoded.
struct Encoding {
    places: Vec<Place>,
    work: Work<Encoded>,
}

impl Encoder {
    pub fn new(workers: Workers, salts: Salts) -> Self {
        Self { workers, salts, under_way: Vec::new() }
    }

    pub fn begin(&mut self, whole: Vec<(Place, Vec<EventColumns>)>) {
        if !whole.is_empty() {
            let places = whole.iter().map(|(place, _)| *place).collect();
            let salts = self.salts.clone();
            self.under_way.push(Encoding { places, work: self.workers.begin(move || encoded(whole, &salts)) });
        }
    }

    /// The windows that are being encoded.
    pub fn busy(&self) -> BTreeSet<Place> {
        self.under_way.iter().flat_map(|encoding| &encoding.places).copied().collect()
    }

    /// The files that are done, in the order in which their windows became whole; with `waits`, all.
    pub async fn take(&mut self, waits: bool) -> Encoded {
        let mut done = Vec::new();
        for encoding in std::mem::take(&mut self.under_way) {
            match waits || encoding.work.is_done() {
                true => done.extend(encoding.work.end().await),
                false => self.under_way.push(encoding),
            }
        }
        done
    }
}

/// What fails here is tried again in the commit, which ends should it fail there, too.
fn encoded(whole: Vec<(Place, Vec<EventColumns>)>, salts: &Salts) -> Encoded {
    let table = |(place, columns): (Place, Vec<EventColumns>)| {
        let made = EncodedTable::of_window(columns, salts).inspect_err(|error| {
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
    use std::time::Duration;

    use super::*;
    use crate::archive::{Archive, MemoryStore, TeamState};
    use crate::collect::Counted;
    use crate::model::{EventId, Instant, Range, RawEvent, ServedTime, Stream, TeamId};
    use crate::pipeline::commit::batch::Batch;
    use crate::pipeline::commit::change::{StreamChange, WindowChange};
    use crate::pipeline::commit::flush::prepare;
    use crate::pipeline::commit::piece::Piece;
    use crate::pipeline::settings::{COMMIT_EVENTS_MIN, Settings};

    /// A batch, and an encoder that serves it.
    struct Waiting {
        batch: Batch,
        encoder: Encoder,
    }

    impl Waiting {
        fn new() -> Self {
            Self { batch: Batch::default(), encoder: Encoder::new(Workers::Inline, salts()) }
        }

        fn encode(&mut self) {
            self.encoder.begin(self.batch.take_whole());
        }

        async fn keep_encoded(&mut self, waits: bool) {
            self.batch.encoded.extend(self.encoder.take(waits).await);
        }
    }

    const STREAM: Stream = Stream::Connections;
    const EVENTS: usize = 8;

    fn salts() -> Salts {
        Salts::of_test(TeamId::from("t"))
    }

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
            piece.make_columns(&salts(), STREAM, at(30));
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
        waiting.encode();
    }

    async fn rows_encoded(waiting: &mut Waiting) -> Option<u64> {
        waiting.keep_encoded(false).await;
        assert!(waiting.encoder.busy().is_empty());
        waiting.batch.encoded.get(&(STREAM, window())).map(EncodedTable::rows)
    }

    #[tokio::test]
    async fn a_window_is_encoded_once_it_is_read_whole_and_committed_as_that_file() {
        let mut waiting = Waiting::new();
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
        let mut waiting = Waiting::new();
        read(&mut waiting, (0, 12), piece(0, true));
        read(&mut waiting, (12, 24), piece(12, false));
        assert_eq!(rows_encoded(&mut waiting).await, None);
        let mut waiting = Waiting::new();
        read(&mut waiting, (0, 24), piece(0, true));
        assert_eq!(rows_encoded(&mut waiting).await, Some(EVENTS as u64));
        waiting.batch.add_events(STREAM, Some(window()), piece(1, true));
        assert_eq!(rows_encoded(&mut waiting).await, None);
    }

    #[tokio::test]
    async fn what_is_being_encoded_is_waited_for_where_that_is_asked() {
        let (mut waiting, end) = busy();
        waiting.keep_encoded(false).await;
        assert!(waiting.encoder.busy().contains(&(STREAM, window())) && waiting.batch.encoded.is_empty());
        end.send(()).unwrap();
        waiting.keep_encoded(true).await;
        assert!(waiting.encoder.busy().is_empty() && waiting.batch.encoded.len() == 1);
    }

    /// One window that is read whole and being encoded, until it is told to end.
    fn busy() -> (Waiting, Sender<()>) {
        let mut waiting = Waiting::new();
        read(&mut waiting, (0, 24), piece(0, true));
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let encoded = waiting.encoder.under_way.remove(0).work;
        let Work::Done(encoded) = encoded else { panic!("it is encoded in place") };
        let work = Workers::Threads.begin(move || {
            ended.recv().unwrap();
            encoded
        });
        waiting.encoder.under_way.push(Encoding { places: vec![(STREAM, window())], work });
        (waiting, end)
    }

    #[tokio::test]
    async fn a_window_that_is_being_encoded_waits_for_a_later_commit_and_is_encoded_once() {
        let state = TeamState::genesis("a", TeamId::from("t"));
        let (mut waiting, end) = busy();
        let take = |waiting: &mut Waiting, is_full: bool| {
            let busy = waiting.encoder.busy();
            waiting.batch.take_ready(&state, &busy, is_full).held_events()
        };
        assert_eq!(take(&mut waiting, false), 0, "too few besides");
        read_of(&mut waiting, Range::new(at(24), at(48)), (24, 48), events_of(24, COMMIT_EVENTS_MIN, true));
        waiting.keep_encoded(false).await;
        assert_eq!(waiting.batch.encoded.len(), 1);
        assert_eq!(take(&mut waiting, false), COMMIT_EVENTS_MIN, "the other is worth a commit");
        waiting.encode();
        assert_eq!((waiting.encoder.under_way.len(), waiting.batch.held_events()), (1, EVENTS));
        end.send(()).unwrap();
        waiting.keep_encoded(true).await;
        assert_eq!(waiting.batch.unencoded_events(), 0);
        assert_eq!(take(&mut waiting, true), EVENTS);
    }

    #[test]
    fn what_may_speak_of_windows_that_are_being_encoded_waits_with_them() {
        let state = TeamState::genesis("a", TeamId::from("t"));
        let mut waiting = Waiting::new();
        read_of(&mut waiting, Range::new(at(24), at(48)), (24, 48), events_of(24, COMMIT_EVENTS_MIN, true));
        waiting.batch.change_stream(STREAM, StreamChange::default());
        let busy = BTreeSet::from([(STREAM, window())]);
        assert_eq!(waiting.batch.take_ready(&state, &busy, true).held_events(), 0);
        assert_eq!(waiting.batch.take_ready(&state, &BTreeSet::new(), false).held_events(), COMMIT_EVENTS_MIN);
    }
}

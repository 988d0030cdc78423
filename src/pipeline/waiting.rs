//! What a round has read and not committed, and the work on it that is under way.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::archive::{ArchiveError, EncodedTable, EventColumns};

use super::batch::{Batch, Place};
use super::flushed::Flushed;
use super::making::Made;
use super::workers::{Work, Workers};

/// What a commit brought, and how long it took.
pub type Committed = Result<(Flushed, Duration), ArchiveError>;

/// What was read and is not committed.
pub struct Waiting {
    pub batch: Batch,
    /// There is one at a time: commits follow one another.
    pub under_way: Option<UnderWay>,
    /// Sessions that commits of this round left to be made.
    pub making: Option<JoinHandle<Made>>,
    /// Files of windows of the batch, encoded while others are read: a commit then has less to do while others wait for it.
    encoding: Vec<Work<Vec<(Place, EncodedTable)>>>,
    /// When nothing was held back last.
    pub emptied_at: Duration,
}

/// A commit under way.
pub struct UnderWay {
    pub events: usize,
    pub end: JoinHandle<Committed>,
}

impl Waiting {
    /// Nothing, as of now.
    pub fn new(emptied_at: Duration) -> Self {
        Self { batch: Batch::default(), under_way: None, making: None, encoding: Vec::new(), emptied_at }
    }

    /// Begins to encode the windows that have become whole.
    pub fn encode(&mut self, workers: Workers) {
        let whole = self.batch.take_whole();
        if !whole.is_empty() {
            self.encoding.push(workers.begin(move || encoded(whole)));
        }
    }

    /// Takes over what is encoded, and with `waits` all that is being encoded. Whether nothing more is.
    pub async fn keep_encoded(&mut self, waits: bool) -> bool {
        for encoding in std::mem::take(&mut self.encoding) {
            match waits || encoding.is_done() {
                true => self.batch.encoded.extend(encoding.end().await),
                false => self.encoding.push(encoding),
            }
        }
        self.encoding.is_empty()
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

    use super::super::change::WindowChange;
    use super::super::flush::prepare;
    use super::super::piece::Piece;
    use super::super::settings::Settings;
    use super::*;
    use crate::archive::{Archive, MemoryStore};
    use crate::collect::Counted;
    use crate::model::{EventId, Instant, Range, RawEvent, ServedTime, Stream, TeamId};

    const STREAM: Stream = Stream::Connections;
    const EVENTS: i64 = 8;

    fn at(hour: i64) -> Instant {
        let start: Instant = "2026-11-03T00:00:00Z".parse().unwrap();
        Instant::from_nanos(start.nanos() + hour * 3_600_000_000_000)
    }

    fn window() -> Range {
        Range::new(at(0), at(24))
    }

    /// Some events of an hour.
    fn piece(hour: i64, with_columns: bool) -> Piece {
        let event = |n: i64| {
            let time = Instant::from_nanos(at(hour).nanos() + n);
            let id = format!("e{hour}-{n}");
            let text = format!(r#"{{"id":"{id}","connectionClosedEvent":{{"connectionID":"c"}}}}"#);
            let event = RawEvent::new(text.into(), false, Some(EventId::from(id.as_str())), ServedTime::At(time));
            Counted { event: RawEvent { is_json: true, ..event }, count: 1 }
        };
        let mut piece = Piece::from((0..EVENTS).map(event).collect::<Vec<_>>());
        if with_columns {
            piece.make_columns(&TeamId::from("t"), STREAM, at(30));
        }
        piece
    }

    fn read(waiting: &mut Waiting, hours: (i64, i64), piece: Piece) {
        let mut change = WindowChange::new(STREAM, window(), at(30));
        change.confirmed = Some(Range::new(at(hours.0), at(hours.1)));
        waiting.batch.add_change(change);
        waiting.batch.add_events(STREAM, Some(window()), piece);
        waiting.encode(Workers::Inline);
    }

    async fn rows_encoded(waiting: &mut Waiting) -> Option<u64> {
        assert!(waiting.keep_encoded(false).await);
        waiting.batch.encoded.get(&(STREAM, window())).map(EncodedTable::rows)
    }

    #[tokio::test]
    async fn a_window_is_encoded_once_it_is_read_whole_and_committed_as_that_file() {
        let mut waiting = Waiting::new(Duration::ZERO);
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
        let mut waiting = Waiting::new(Duration::ZERO);
        read(&mut waiting, (0, 12), piece(0, true));
        read(&mut waiting, (12, 24), piece(12, false));
        assert_eq!(rows_encoded(&mut waiting).await, None);
        let mut waiting = Waiting::new(Duration::ZERO);
        read(&mut waiting, (0, 24), piece(0, true));
        assert_eq!(rows_encoded(&mut waiting).await, Some(EVENTS as u64));
        waiting.batch.add_events(STREAM, Some(window()), piece(1, true));
        assert_eq!(rows_encoded(&mut waiting).await, None);
    }

    #[tokio::test]
    async fn what_is_being_encoded_is_waited_for_where_that_is_asked() {
        let mut waiting = Waiting::new(Duration::ZERO);
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let table = encoded(vec![((STREAM, window()), vec![piece(0, true).columns().unwrap().clone()])]);
        waiting.encoding.push(Workers::Threads.begin(move || {
            ended.recv().unwrap();
            table
        }));
        assert!(!waiting.keep_encoded(false).await && waiting.batch.encoded.is_empty());
        end.send(()).unwrap();
        assert!(waiting.keep_encoded(true).await && waiting.batch.encoded.len() == 1);
    }
}

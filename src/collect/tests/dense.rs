//! The cost of reading a dense stretch: the reader cuts it where the first walk stopped, and requests no page three
//! times.

use std::sync::Arc;

use futures::FutureExt;
use parking_lot::Mutex;

use super::super::*;
use super::page_source::Pages;
use crate::api::{ApiError, Page, PageQuery, Served};
use crate::model::{EventId, Instant, Range, RawEvent, ServedTime, Stream, TeamId};

const START: i64 = 1_700_000_000;
const SECONDS: i64 = 3_000;
const BURST_AT: i64 = 1_777;
const LIMIT: u32 = 100;
const WALK_EVENTS_MAX: u64 = 500;

/// One event a second, and `burst` more in one second. It counts the requests.
#[derive(Default)]
struct Dense {
    asked: Mutex<(u32, u32)>,
    burst: usize,
    /// Every answer has other bytes.
    is_reworded: bool,
    /// Bytes of padding of each event's text.
    padding: usize,
}

impl Dense {
    fn answer(&self, query: &PageQuery) -> Page {
        let mut asked = self.asked.lock();
        asked.0 += 1;
        let seconds = query.start.max(START)..(query.stop + 1).min(START + SECONDS);
        let event = |(second, number): (i64, usize)| {
            let (at, name) = (ServedTime::At(Instant::from_seconds(second)), format!("{second}.{number}"));
            let text = format!("event {name}{}", " ".repeat(self.padding));
            RawEvent::new(text.into(), false, Some(EventId::new(name)), at)
        };
        let of_second = |second: i64| {
            let count = 1 + if second == START + BURST_AT { self.burst } else { 0 };
            (0..count).map(move |number| (second, number))
        };
        let offset = usize::try_from(query.offset).unwrap();
        let events: Vec<RawEvent> = seconds.flat_map(of_second).skip(offset).take(LIMIT as usize).map(event).collect();
        let mut body: Vec<u8> = events.iter().flat_map(|event| event.text.to_vec()).collect();
        body.extend_from_slice(&if self.is_reworded { asked.0.to_le_bytes() } else { [0; 4] });
        Page { events, body: body.into(), ..Page::default() }
    }
}

impl Pages for Dense {
    fn serve(&self, query: &PageQuery) -> Result<Served<Page>, ApiError> {
        Ok(Served { body: self.answer(query), at: None })
    }

    fn note_reread(&self, is_same: bool) {
        self.asked.lock().1 += u32::from(is_same);
    }
}

/// Reads all events of `source`. Returns the number of requests, how often a repeated page had the same bytes, and the most events
/// of a segment.
fn read(source: Dense) -> (u32, u32, usize) {
    let (source, team, limit) = (Arc::new(source), TeamId::from("t"), PageLimit::fixed(LIMIT));
    let range = Range::new(Instant::from_seconds(START), Instant::from_seconds(START + SECONDS));
    let devices = Arc::new([None]);
    let lists = Lists { source: source.clone(), team, stream: Stream::Connections, devices, limit };
    let mut reader = SpanReader::new(lists, PaddedRange { range, pad: 1 }, WALK_EVENTS_MAX, None);
    let (mut events, mut end, mut most) = (0, range.start, 0);
    while let Some(segment) = reader.next().now_or_never().unwrap().unwrap() {
        assert_eq!((segment.outcome, segment.range.start), (RangeOutcome::Confirmed, end));
        assert!(segment.events.iter().all(|held| held.event.at().is_some_and(|at| segment.range.owns(at))));
        (events, end) = (events + segment.events.len(), segment.range.end);
        most = most.max(segment.events.len());
    }
    assert_eq!((events, end), (usize::try_from(SECONDS).unwrap() + source.burst, range.end));
    let (asked, same) = *source.asked.lock();
    (asked, same, most)
}

#[test]
fn a_dense_stretch_is_read_twice_and_never_three_times() {
    for is_reworded in [false, true] {
        let (asked, same, _) = read(Dense { is_reworded, ..Dense::default() });
        assert!(asked <= 2 * 30 * 5 / 4, "{asked} requests for 30 pages");
        assert_eq!(same == 0, is_reworded, "{same} pages came again");
    }
}

#[test]
fn a_second_with_too_many_events_for_one_walk_is_not_searched_by_halves() {
    let (asked, ..) = read(Dense { burst: 2_000, ..Dense::default() });
    assert!(asked <= 2 * 50 * 3 / 2, "{asked} requests for 50 pages");
}

#[test]
fn large_events_are_read_in_smaller_segments() {
    let (.., most) = read(Dense::default());
    assert!(most > 400, "usual events: {most}");
    for (padding, events_max, requests_max) in [(3 << 10, 200, 90), (16 << 10, 100, 100)] {
        let (asked, _, most) = read(Dense { padding, ..Dense::default() });
        assert!(most <= events_max, "{most} events with {padding} bytes of padding");
        assert!(asked <= requests_max, "{asked} requests for 30 pages with {padding} bytes of padding");
    }
}

//! What reading a dense stretch costs: it is cut where the first walk stood, and nothing is asked for three times.

use std::sync::Mutex;

use futures::FutureExt;

use super::pages::Pages;
use super::*;
use crate::api::{ApiError, Page, PageQuery, Served};
use crate::model::{EventId, Instant, Range, RawEvent, ServedTime, Stream, TeamId};

const START: i64 = 1_700_000_000;
const SECONDS: i64 = 3_000;
const LIMIT: u32 = 100;
const WALK_EVENTS_MAX: u64 = 500;

/// One event a second; counts what it is asked.
#[derive(Default)]
struct Dense {
    asked: Mutex<(u32, u32)>,
    /// Every answer is worded differently.
    restless: bool,
}

impl Dense {
    fn answer(&self, query: &PageQuery) -> Page {
        let mut asked = self.asked.lock().unwrap();
        asked.0 += 1;
        let seconds = query.start.max(START)..(query.stop + 1).min(START + SECONDS);
        let event = |second: i64| {
            let at = ServedTime::At(Instant::from_seconds(second));
            RawEvent::new(format!("event {second}").into(), false, Some(EventId::new(format!("{second}"))), at)
        };
        let offset = usize::try_from(query.offset).unwrap();
        let events: Vec<RawEvent> = seconds.skip(offset).take(LIMIT as usize).map(event).collect();
        let mut body: Vec<u8> = events.iter().flat_map(|event| event.text.to_vec()).collect();
        body.extend_from_slice(&if self.restless { asked.0.to_le_bytes() } else { [0; 4] });
        Page { events, body: body.into(), ..Page::default() }
    }
}

impl Pages for Dense {
    fn serve(&self, query: &PageQuery) -> Result<Served<Page>, ApiError> {
        Ok(Served { body: self.answer(query), at: None })
    }

    fn came_again(&self, is_same: bool) {
        self.asked.lock().unwrap().1 += u32::from(is_same);
    }
}

#[test]
fn a_dense_stretch_is_read_twice_and_not_three_times() {
    for restless in [false, true] {
        let source = Dense { restless, ..Dense::default() };
        let (team, limit) = (TeamId::from("t"), PageLimit::fixed(LIMIT));
        let range = Range::new(Instant::from_seconds(START), Instant::from_seconds(START + SECONDS));
        let lists =
            Lists { source: &source, team: &team, stream: Stream::Connections, devices: &[None], limit: &limit };
        let mut reader = SpanReader::new(lists, Asked { range, pad: 1 }, WALK_EVENTS_MAX, None);
        let (mut events, mut end) = (0, range.start);
        while let Some(leaf) = reader.next().now_or_never().unwrap().unwrap() {
            assert_eq!((leaf.outcome, leaf.range.start), (Outcome::Confirmed, end));
            assert!(leaf.events.iter().all(|held| held.event.at().is_some_and(|at| leaf.range.owns(at))));
            (events, end) = (events + leaf.events.len(), leaf.range.end);
        }
        assert_eq!((events, end), (usize::try_from(SECONDS).unwrap(), range.end));
        let (asked, same) = *source.asked.lock().unwrap();
        assert!(asked <= 2 * 30 * 5 / 4, "{asked} requests for 30 pages");
        assert_eq!(same == 0, restless, "{same} pages came again");
    }
}

//! The windows of a stream: those in the archive, and new ones on the grid between them.

use std::collections::BTreeMap;

use crate::archive::{StreamRecord, TeamState, WindowRecord};
use crate::model::{Instant, Range, Stream, WindowGrid};

/// The windows of a stream, oldest first.
pub fn each_window(state: &TeamState, stream: Stream) -> impl Iterator<Item = &WindowRecord> {
    windows_from(state, stream, Instant::from_nanos(i64::MIN))
}

/// The windows of a stream that start at `from` or later, oldest first.
pub fn windows_from(state: &TeamState, stream: Stream, from: Instant) -> impl Iterator<Item = &WindowRecord> {
    state.windows.range((stream, from)..).map_while(move |((of, _), window)| (*of == stream).then_some(window))
}

/// One stream's record and windows as of the start of a round.
#[derive(Debug, Clone)]
pub struct StreamWindows {
    pub record: StreamRecord,
    /// The archived records of windows, by start.
    pub held: BTreeMap<Instant, WindowRecord>,
    /// Every known window: the archived ones, and the new ones of the plan.
    ranges: BTreeMap<Instant, Range>,
    pub grid: WindowGrid,
}

impl StreamWindows {
    pub fn new(record: StreamRecord, held: impl IntoIterator<Item = WindowRecord>, grid: WindowGrid) -> Self {
        let held: BTreeMap<_, _> = held.into_iter().map(|window| (window.range.start, window)).collect();
        let ranges = held.values().map(|window| (window.range.start, window.range)).collect();
        Self { record, held, ranges, grid }
    }

    /// A stream of the archive.
    pub fn of(state: &TeamState, stream: Stream, grid: WindowGrid) -> Self {
        let record = state.streams.get(&stream).cloned().unwrap_or_default();
        Self::new(record, each_window(state, stream).cloned(), grid)
    }

    /// Adds the new windows between `begins` and `now`. Returns every window from the one at `begins` to the one that
    /// owns `now`.
    pub fn extend(&mut self, begins: Instant, now: Instant) -> Vec<Range> {
        let mut all = Vec::new();
        let mut start = begins;
        while start <= now {
            // The first window can begin within one of the grid, which another setting made.
            let window = Range::new(start, self.of_event(start).end);
            self.ranges.insert(start, window);
            start = window.end;
            all.push(window);
        }
        all
    }

    /// The window that owns `at`: a known one, or one of the grid without the parts of its known neighbours. Windows of
    /// another length do not change.
    pub fn of_event(&self, at: Instant) -> Range {
        let before = self.ranges.range(..=at).next_back().map(|(_, window)| *window);
        if let Some(held) = before.filter(|held| held.owns(at)) {
            return held;
        }
        let fresh = self.grid.window_of(at);
        let start = before.map_or(fresh.start, |before| fresh.start.max(before.end));
        let next = self.ranges.range(at..).next().map_or(fresh.end, |(next, _)| *next);
        Range::new(start, fresh.end.min(next))
    }

    /// The windows that a range of event time touches, in order.
    pub fn overlapping(&self, range: Range) -> Vec<Range> {
        let mut all = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let window = self.of_event(at);
            at = window.end;
            all.push(window);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_new_window_overlaps_no_known_window() {
        let hour = |hours: u64| Instant::from_seconds(1_700_006_400).plus(Duration::from_secs(hours * 3600));
        let day = WindowGrid::new(Duration::from_secs(86_400));
        let start = day.window_of(hour(0)).start;
        let at = |hours: u64| start.plus(Duration::from_secs(hours * 3600));
        let held = [(2, 3), (3, 4), (30, 31)].map(|(from, to)| Range::new(at(from), at(to)));
        let held = held.map(|range| WindowRecord::new(Stream::Activity, range));
        let mut windows = StreamWindows::new(StreamRecord::default(), held, day);
        for (asked, expected) in [
            (1, (0, 2)),
            (2, (2, 3)),
            (3, (3, 4)),
            (4, (4, 24)),
            (25, (24, 30)),
            (30, (30, 31)),
            (40, (31, 48)),
            (50, (48, 72)),
        ] {
            let window = windows.of_event(at(asked));
            assert_eq!(window, Range::new(at(expected.0), at(expected.1)), "{asked}");
        }
        let parts: Vec<Range> = windows.overlapping(Range::new(at(0), at(49)));
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start), "{parts:?}");
        let all = windows.extend(at(0), at(31));
        let expected = [(0, 2), (2, 3), (3, 4), (4, 24), (24, 30), (30, 31), (31, 48)];
        assert_eq!(all, expected.map(|(from, to)| Range::new(at(from), at(to))));
    }
}

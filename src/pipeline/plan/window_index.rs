//! The windows of a stream: those in the archive, and new ones on the grid between them.

use std::collections::BTreeMap;

use crate::archive::{StreamRecord, TeamState, WindowRecord};
use crate::model::{Instant, Range, Stream, WindowGrid};

/// One stream's records of windows, by start.
pub type Windows = BTreeMap<Instant, WindowRecord>;

/// One stream's record and windows.
pub fn windows_of(state: &TeamState, stream: Stream) -> (StreamRecord, Windows) {
    let record = state.streams.get(&stream).cloned().unwrap_or_default();
    (record, each_window(state, stream).map(|window| (window.range.start, window.clone())).collect())
}

/// The windows of a stream, oldest first.
pub fn each_window(state: &TeamState, stream: Stream) -> impl Iterator<Item = &WindowRecord> {
    let windows = state.windows.range((stream, Instant::from_nanos(i64::MIN))..);
    windows.map_while(move |((of, _), window)| (*of == stream).then_some(window))
}

/// Finds the window that owns an event.
pub struct WindowIndex {
    windows: BTreeMap<Instant, Range>,
    grid: WindowGrid,
}

impl WindowIndex {
    pub fn new(grid: WindowGrid, held: &Windows) -> Self {
        Self { windows: held.values().map(|window| (window.range.start, window.range)).collect(), grid }
    }

    /// Adds the missing windows between `begins` and `now`. Returns every window from the one at `begins` to the one
    /// that owns `now`.
    pub fn extend(&mut self, begins: Instant, now: Instant) -> Vec<Range> {
        let mut all = Vec::new();
        let mut start = begins;
        while start <= now {
            let window = self.windows.get(&start).copied().unwrap_or_else(|| {
                let fresh = self.grid.window_from(start);
                let next = self.windows.range(start..).next().map_or(fresh.end, |(next, _)| *next);
                Range::new(start, fresh.end.min(next))
            });
            self.windows.insert(start, window);
            start = window.end;
            all.push(window);
        }
        all
    }

    /// The window that owns `at`: a known one, or one of the grid without the parts of its known neighbours. Windows of
    /// another length do not change.
    pub fn of(&self, at: Instant) -> Range {
        let before = self.windows.range(..=at).next_back().map(|(_, window)| *window);
        if let Some(held) = before.filter(|held| held.owns(at)) {
            return held;
        }
        let fresh = self.grid.window_of(at);
        let start = before.map_or(fresh.start, |before| fresh.start.max(before.end));
        let next = self.windows.range(at..).next().map_or(fresh.end, |(next, _)| *next);
        Range::new(start, fresh.end.min(next))
    }

    /// The windows that a range of event time touches, in order.
    pub fn overlapping(&self, range: Range) -> Vec<Range> {
        let mut all = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let window = self.of(at);
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
        let windows = [(2, 3), (3, 4), (30, 31)].map(|(from, to)| (at(from), Range::new(at(from), at(to))));
        let mut index = WindowIndex { windows: windows.into(), grid: day };
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
            let window = index.of(at(asked));
            assert_eq!(window, Range::new(at(expected.0), at(expected.1)), "{asked}");
        }
        let parts: Vec<Range> = index.overlapping(Range::new(at(0), at(49)));
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start), "{parts:?}");
        let all = index.extend(at(0), at(31));
        let expected = [(0, 2), (2, 3), (3, 4), (4, 24), (24, 30), (30, 31), (31, 48)];
        assert_eq!(all, expected.map(|(from, to)| Range::new(at(from), at(to))));
    }
}

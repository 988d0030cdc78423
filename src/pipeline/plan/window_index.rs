//! The windows that events are sorted into.

use std::collections::BTreeMap;

use crate::archive::WindowRecord;
use crate::model::{Instant, Range, Stream, WindowGrid};

use crate::pipeline::plan::stream_plan::{StreamPlan, Windows};

/// The windows that events are sorted into.
pub struct WindowIndex {
    windows: BTreeMap<Instant, Range>,
    grid: WindowGrid,
}

impl WindowIndex {
    pub fn new(grid: WindowGrid, held: &Windows, plan: &StreamPlan, now: Instant) -> Self {
        let mut windows: BTreeMap<Instant, Range> =
            held.values().map(|window| (window.range.start, window.range)).collect();
        windows.extend(plan.open.iter().map(|window| (window.start, *window)));
        let mut start = plan.begins.unwrap_or(now);
        while start <= now {
            let window = windows.get(&start).copied().unwrap_or_else(|| {
                let fresh = grid.window_from(start);
                let next = windows.range(start..).next().map_or(fresh.end, |(next, _)| *next);
                Range::new(start, fresh.end.min(next))
            });
            windows.insert(window.start, window);
            start = window.end;
        }
        Self { windows, grid }
    }

    /// The window that owns `at`.
    pub fn of(&self, at: Instant) -> Range {
        let before = self.windows.range(..=at).next_back().map(|(_, window)| *window);
        let next = self.windows.range(at..).next().map(|(next, _)| *next);
        beside(self.grid, before, next, at)
    }

    /// The windows that a part of event time touches, in order.
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

/// The window that owns `at`, given those that are known.
pub fn owner(
    windows: &BTreeMap<(Stream, Instant), WindowRecord>,
    stream: Stream,
    grid: WindowGrid,
    at: Instant,
) -> Range {
    let of_stream = |(_, record): &(&(Stream, Instant), &WindowRecord)| record.stream == stream;
    let before = windows.range(..=(stream, at)).next_back().filter(of_stream).map(|(_, record)| record.range);
    let next = windows.range((stream, at)..).next().filter(of_stream).map(|((_, next), _)| *next);
    beside(grid, before, next, at)
}

/// The window that owns `at`: the known one `before`, or that of the grid, less what the known windows before and after it
/// own. Windows made under another length stay as they are.
pub fn beside(grid: WindowGrid, before: Option<Range>, next: Option<Instant>, at: Instant) -> Range {
    if let Some(held) = before.filter(|held| held.owns(at)) {
        return held;
    }
    let fresh = grid.window_of(at);
    let start = before.map_or(fresh.start, |before| fresh.start.max(before.end));
    Range::new(start, next.map_or(fresh.end, |next| fresh.end.min(next)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_window_that_is_not_known_yet_overlaps_none_that_is() {
        let hour = |hours: u64| Instant::from_seconds(1_700_006_400).plus(Duration::from_secs(hours * 3600));
        let day = WindowGrid::new(Duration::from_secs(86_400));
        let start = day.window_of(hour(0)).start;
        let at = |hours: u64| start.plus(Duration::from_secs(hours * 3600));
        let windows = [(2, 3), (3, 4), (30, 31)].map(|(from, to)| (at(from), Range::new(at(from), at(to))));
        let index = WindowIndex { windows: windows.into(), grid: day };
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
    }
}

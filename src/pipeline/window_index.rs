//! The windows that events are sorted into.

use std::collections::BTreeMap;

use crate::model::{Instant, Range, WindowGrid};

use super::plan::{StreamPlan, Windows};

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
        let known = self.windows.range(..=at).next_back().map(|(_, window)| *window);
        known.filter(|window| window.owns(at)).unwrap_or_else(|| self.grid.window_of(at))
    }

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

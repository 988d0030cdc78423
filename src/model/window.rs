//! Half-open intervals of event time, and the grid of the windows.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Instant;

/// A half-open interval `[start, end)` of event time, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Range {
    pub start: Instant,
    pub end: Instant,
}

impl Range {
    pub fn new(start: Instant, end: Instant) -> Self {
        debug_assert!(start <= end);
        Self { start, end }
    }

    pub fn owns(&self, at: Instant) -> bool {
        self.start <= at && at < self.end
    }

    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Refuses an empty or reversed period.
    pub fn filled(self) -> Result<Self, String> {
        let Self { start, end } = self;
        match start.cmp(&end) {
            Ordering::Less => Ok(self),
            Ordering::Equal => Err(format!("the period is empty: it begins and ends at {start}")),
            Ordering::Greater => {
                Err(format!("the period ends before it begins: it begins at {start} and ends at {end}"))
            }
        }
    }

    pub fn length(&self) -> Duration {
        self.end.since(self.start)
    }

    pub fn overlaps(&self, other: &Range) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The two halves, cut at a whole second; `None` if the range is one second long.
    pub fn halves(&self) -> Option<(Range, Range)> {
        let seconds = self.end.seconds() - self.start.seconds();
        if seconds <= 1 {
            return None;
        }
        let middle = Instant::from_seconds(self.start.seconds() + seconds / 2);
        Some((Range::new(self.start, middle), Range::new(middle, self.end)))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}..{})", self.start, self.end)
    }
}

/// The alignment of windows: cells of one length, counted from the epoch in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowGrid {
    length: Duration,
}

impl WindowGrid {
    /// A grid of cells of `length`, which divides a day or is a whole number of days; the configuration checks this.
    pub fn new(length: Duration) -> Self {
        debug_assert!(length >= Duration::from_secs(1));
        Self { length }
    }

    pub fn length(&self) -> Duration {
        self.length
    }

    /// The window that contains `at`.
    pub fn window_of(&self, at: Instant) -> Range {
        let start = at.floor_to(self.length);
        Range::new(start, start.plus(self.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    #[test]
    fn a_day_window_is_aligned_on_utc_and_half_open() {
        let day = WindowGrid::new(Duration::from_secs(86_400)).window_of(at("2026-11-20T13:00:00.5Z"));
        assert_eq!(day.to_string(), "[2026-11-20T00:00:00Z..2026-11-21T00:00:00Z)");
        assert!(day.owns(at("2026-11-20T00:00:00Z")) && day.owns(at("2026-11-20T23:59:59.999999999Z")));
        assert!(!day.owns(at("2026-11-21T00:00:00Z")));
    }

    #[test]
    fn halving_ends_at_one_second() {
        let mut range = Range::new(Instant::from_seconds(10), Instant::from_seconds(17));
        while let Some((left, right)) = range.halves() {
            assert_eq!((left.start, left.end, right.end), (range.start, right.start, range.end));
            range = right;
        }
        assert_eq!(range.length(), Duration::from_secs(1));
    }
}

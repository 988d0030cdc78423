//! Cuts the ranges to read into spans, one for each reading. Pure.

use std::time::Duration;

use crate::model::ranges::clip;
use crate::model::{Instant, Range, WindowGrid};
use crate::pipeline::plan::StreamWindows;
use crate::pipeline::settings::SPAN_EVENTS_TARGET;

/// The first stride of a settled reading. Windows of an unknown stream may be large, so they are read in parts.
pub fn first_stride(windows: &StreamWindows) -> Duration {
    let length = windows.grid.length();
    if windows.held.is_empty() { length / FIRST_SPANS_A_WINDOW } else { length }
}

/// The first stride of a re-scan, from the density of the windows.
pub fn rescan_stride(windows: &StreamWindows, rescans: &[Range]) -> Duration {
    let held = rescans.iter().filter_map(|part| Some(windows.held.range(..=part.start).next_back()?.1));
    let (events, seconds) =
        held.fold((1, 1), |(events, seconds), held| (events + held.events, seconds + held.range.length().as_secs()));
    Duration::from_secs(seconds.saturating_mul(SPAN_EVENTS_TARGET) / events).max(Duration::from_secs(1))
}

/// Cuts ranges into spans of about [`SPAN_EVENTS_TARGET`] events each: one span covers many quiet windows, and a busy day takes
/// many spans. A span is whole windows, or an equal part of one window.
#[derive(Debug, Clone)]
pub struct SpanPlanner {
    /// Ranges that were not returned yet. The next one is last.
    rest: Vec<Range>,
    grid: WindowGrid,
    stride: Duration,
    /// Events and nanoseconds of recent parts. The latest counts most.
    seen: (u64, u128),
}

/// Spans of a window of unknown density.
const FIRST_SPANS_A_WINDOW: u32 = 4;
const STRIDE_MAX: Duration = Duration::from_secs(366 * 86_400);
/// The stride grows at most by this factor. If a part is denser than the mean by this factor, only this part counts.
const STRIDE_FACTOR: u32 = 4;

impl SpanPlanner {
    /// `stride` is used until the first part was read.
    pub fn new(ranges: &[Range], grid: WindowGrid, stride: Duration) -> Self {
        let mut rest: Vec<Range> = Vec::new();
        for range in ranges {
            match rest.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => rest.push(*range),
            }
        }
        rest.reverse();
        Self { rest, grid, stride, seen: (0, 0) }
    }

    /// The next span, of whole seconds.
    pub fn next_span(&mut self) -> Option<Range> {
        let range = self.rest.pop()?;
        let span = clip(Range::new(range.start, self.end_from(range.start)), range).unwrap_or(range);
        if span.end < range.end {
            self.rest.push(Range::new(span.end, range.end));
        }
        Some(span)
    }

    /// The end of a span that starts at `start`. It may exceed the stride a little, if that saves a part.
    fn end_from(&self, start: Instant) -> Instant {
        let window = self.grid.window_of(start);
        let (length, stride) = (window.length().as_secs(), self.stride.as_secs().max(1));
        let parts = length.saturating_mul(4).saturating_sub(stride).div_ceil(stride * 4);
        if parts <= 1 {
            let wanted = start.plus(Duration::from_secs(stride + length / 4));
            return self.grid.window_of(wanted).start.max(window.end);
        }
        let part = (length / parts).max(1);
        let passed = start.since(window.start).as_secs() / part * part;
        let end = window.start.plus(Duration::from_secs(passed + part));
        // The remainder of the division belongs to the last part.
        if window.end < end.plus(Duration::from_secs(part)) { window.end } else { end }
    }

    /// Adjusts the stride to the density of a part that was read.
    pub fn learn(&mut self, part: Range, events: u64) {
        let new = (events, part.length().as_nanos());
        let wanted = |(events, nanos): (u64, u128)| {
            let wanted = u128::from(SPAN_EVENTS_TARGET) * nanos / u128::from(events.max(1));
            Duration::from_nanos(u64::try_from(wanted).unwrap_or(u64::MAX))
        };
        let mean = (self.seen.0 / 4 * 3 + new.0, self.seen.1 / 4 * 3 + new.1);
        self.seen = if wanted(new) * STRIDE_FACTOR < wanted(mean) { new } else { mean };
        self.stride = wanted(self.seen).min(self.stride * STRIDE_FACTOR).clamp(Duration::from_secs(1), STRIDE_MAX);
    }

    /// Whether every span was returned.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Seconds of event time that were not returned yet.
    pub fn seconds_left(&self) -> u64 {
        self.rest.iter().map(|range| range.length().as_secs()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    fn planner(range: Range, hours: u64) -> SpanPlanner {
        let length = |hours| Duration::from_secs(hours * HOUR);
        SpanPlanner::new(&[range], WindowGrid::new(length(24)), length(hours))
    }

    fn hours(span: Range) -> u64 {
        span.length().as_secs() / HOUR
    }

    #[test]
    fn spans_cover_the_ranges_and_follow_the_density() {
        let range = Range::new(at("2026-11-01T00:00:00Z"), at("2026-11-20T00:00:00Z"));
        let mut planner = planner(range, 24);
        let first = planner.next_span().unwrap();
        assert_eq!(hours(first), 24);
        planner.learn(first, 0);
        assert_eq!(hours(planner.next_span().unwrap()), 4 * 24, "a quiet day is followed by a run");
        planner.learn(first, 10 * SPAN_EVENTS_TARGET);
        assert_eq!(
            hours(planner.next_span().unwrap()),
            4,
            "a busy day of ten strides is followed by a sixth of a stride"
        );
        planner.learn(first, 10 * SPAN_EVENTS_TARGET);
        planner.learn(first, 10 * SPAN_EVENTS_TARGET);
        let mut end = planner.next_span().unwrap().end;
        assert_eq!(end, at("2026-11-06T05:20:00Z"), "then by two spans of a ninth; the second one begins before");
        while let Some(span) = planner.next_span() {
            assert_eq!(span.start, end);
            end = span.end;
        }
        assert_eq!((end, planner.seconds_left()), (range.end, 0));
    }

    /// An unknown month does not hide the busy day after it, and a quiet night does not hide the morning.
    #[test]
    fn a_much_denser_part_counts_alone_and_quieter_parts_count_in_the_mean() {
        let range = Range::new(at("2026-01-01T00:00:00Z"), at("2026-11-20T00:00:00Z"));
        let mut planner = planner(range, 30 * 24);
        planner.learn(planner.clone().next_span().unwrap(), 10);
        let day = Range::new(at("2026-02-01T00:00:00Z"), at("2026-02-02T00:00:00Z"));
        planner.learn(day, 2 * SPAN_EVENTS_TARGET);
        assert_eq!(hours(planner.next_span().unwrap()), 12);
        let night = Range::new(day.start, day.start.plus(Duration::from_secs(8 * HOUR)));
        planner.learn(night, SPAN_EVENTS_TARGET / 12);
        assert_eq!(hours(planner.next_span().unwrap()), 12);
    }

    #[test]
    fn no_span_ends_inside_the_window_after_its_first_window() {
        let range = Range::new(at("2026-11-01T05:00:00Z"), at("2026-11-20T00:00:00Z"));
        for (stride, expected) in [
            (1, vec!["05:00:00", "06:00:00", "07:00:00"]),
            (7, vec!["05:00:00", "06:00:00", "12:00:00", "18:00:00", "00:00:00"]),
            (11, vec!["05:00:00", "12:00:00", "00:00:00", "12:00:00"]),
            (19, vec!["05:00:00", "12:00:00", "00:00:00"]),
            (20, vec!["05:00:00", "00:00:00", "00:00:00"]),
            (45, vec!["05:00:00", "00:00:00", "00:00:00"]),
        ] {
            let mut planner = planner(range, stride);
            for start in expected {
                let span = planner.next_span().unwrap();
                assert!(span.start.to_string().contains(start), "{stride} hours: {span} begins at {start}");
            }
        }
        let mut two_days = planner(range, 45);
        assert_eq!(two_days.next_span().unwrap().end, at("2026-11-03T00:00:00Z"));
    }
}

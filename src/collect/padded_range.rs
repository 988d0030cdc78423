//! A range of event time with its padding.

use crate::model::{Instant, Range, RawEvent};
use crate::planted::{self, Bug};

/// A range of event time with padding. The padding is so wide that no interpretation of the bounds hides an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaddedRange {
    pub range: Range,
    /// Seconds added at both ends, at least 1. Each re-scan uses another padding, so its bounds fall on other events.
    pub pad: i64,
}

impl PaddedRange {
    pub fn start(&self) -> i64 {
        self.range.start.seconds() - self.padding()
    }

    pub fn stop(&self) -> i64 {
        self.range.end.seconds() + self.padding()
    }

    fn padding(&self) -> i64 {
        if planted::is(Bug::NoPad) { 0 } else { self.pad }
    }

    /// Whether an event lies outside the padded range by every interpretation of the bounds.
    pub fn is_stray(&self, at: Instant) -> bool {
        at < Instant::from_seconds(self.start() - 1) || at > Instant::from_seconds(self.stop() + 1)
    }

    /// Whether this reading keeps the event: the event lies in the range, or so far outside that no reading of a neighbouring
    /// range keeps it.
    pub fn keeps(&self, event: &RawEvent) -> bool {
        self.keeps_at(event.at())
    }

    /// As [`PaddedRange::keeps`], by only the event's time.
    pub fn keeps_at(&self, at: Option<Instant>) -> bool {
        at.is_none_or(|at| self.range.owns(at) || self.is_stray(at))
    }
}

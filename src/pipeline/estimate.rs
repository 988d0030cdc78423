//! What a plan would cost: an estimate from the density of what is held already.

use crate::api::PAGE_EVENTS_MAX;

use super::plan::{StreamPlan, Windows};
use super::settings::SPAN_EVENTS_TARGET;

/// Walks that prove a range, and walks that a quiet re-scan takes.
const WALKS_TO_SETTLE: u64 = 2;
const WALKS_TO_RESCAN: u64 = 1;

/// About what a round of one stream would ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Seconds of event time to read and confirm, beside the open windows.
    pub seconds: u64,
    pub open_windows: u64,
    pub rescans: u64,
    pub requests: u64,
    /// The density of events is known from windows that are held.
    pub is_informed: bool,
}

/// Estimates `plan` from the windows that are held.
pub fn estimate(plan: &StreamPlan, windows: &Windows) -> Estimate {
    let (events, held) = windows
        .values()
        .fold((0, 0), |(events, seconds), window| (events + window.events, seconds + window.range.length().as_secs()));
    let seconds = |ranges: &[crate::model::Range]| ranges.iter().map(|range| range.length().as_secs()).sum::<u64>();
    let (unread, rescans) = (seconds(&plan.unread), seconds(&plan.rescans));
    let expected = |seconds: u64| u64::try_from(u128::from(seconds) * u128::from(events) / u128::from(held.max(1)));
    let walk = |seconds: u64| {
        let events = expected(seconds).unwrap_or(u64::MAX);
        let spans = u64::from(seconds > 0) + events / SPAN_EVENTS_TARGET;
        // A walk of a span ends with a page that brings the anchors alone.
        events / u64::from(PAGE_EVENTS_MAX) + 2 * spans
    };
    // The team, its computers, and the look ahead; two pages for an open window.
    let open = 2 * plan.open.len() as u64;
    Estimate {
        seconds: unread,
        open_windows: plan.open.len() as u64,
        rescans: plan.rescans.len() as u64,
        requests: 3 + open + WALKS_TO_SETTLE * walk(unread) + WALKS_TO_RESCAN * walk(rescans),
        is_informed: held > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Instant, Range};

    #[test]
    fn an_unread_range_costs_two_walks_and_nothing_to_do_costs_a_look() {
        let range = Range::new(Instant::from_seconds(1_700_000_000), Instant::from_seconds(1_700_086_400));
        let some = StreamPlan { unread: vec![range], ..StreamPlan::default() };
        assert_eq!(estimate(&some, &Windows::new()).requests, 3 + 4);
        assert_eq!(estimate(&StreamPlan::default(), &Windows::new()).requests, 3);
    }
}

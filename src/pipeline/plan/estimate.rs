//! Estimates the cost of a plan: simulates the round, span by span, with the known density of events.

use std::collections::VecDeque;

use crate::api::PAGE_EVENTS_MAX;
use crate::archive::TeamState;
use crate::collect::ANCHORS_MAX;
use crate::model::{Instant, Range, Stream};

use crate::model::ranges::clip;
use crate::pipeline::plan::{Density, SpanPlanner, StreamPlan, StreamWindows, first_stride, rescan_stride};
use crate::pipeline::settings::{Settings, WALK_EVENTS_MAX};

/// The number of simulated spans. The cost of the rest is extrapolated.
const SPANS_MAX: u64 = 100_000;

/// The estimated requests of one stream's round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Seconds of event time to read and confirm, without the open windows.
    pub seconds: u64,
    pub rescans: u64,
    pub requests: u64,
    /// The density of events is known.
    pub is_density_known: bool,
}

/// Estimates `plan`. An unknown density counts as zero.
pub fn estimate(
    plan: &StreamPlan,
    windows: &StreamWindows,
    density: Option<&Density>,
    settings: &Settings,
    now: Instant,
) -> Estimate {
    let unknown = Density::default();
    let known = density.unwrap_or(&unknown);
    let open: u64 = plan.open.iter().map(|window| open_window_requests(*window, windows, known, now)).sum();
    let look_ahead = u64::from(settings.until.is_none());
    let strides = (first_stride(windows), rescan_stride(windows, &plan.rescans));
    let spans =
        |ranges: &[Range], stride| (SpanPlanner::new(ranges, settings.grid, stride), settings.concurrency, known);
    let unread = cost(spans(&plan.unread, strides.0), |events| 2 * walk(events));
    let rescans = cost(spans(&plan.rescans, strides.1), walk);
    Estimate {
        seconds: plan.unread.iter().map(|range| range.length().as_secs()).sum(),
        rescans: plan.rescans.len() as u64,
        requests: open + look_ahead + unread + rescans,
        is_density_known: density.is_some(),
    }
}

/// Requests of a team's round for the team itself and its computers.
pub fn estimate_of_team(state: Option<&TeamState>, settings: &Settings) -> u64 {
    let is_new = state.is_none_or(|state| state.devices.is_empty());
    1 + u64::from(is_new) + u64::from(settings.reads(Stream::Connections))
}

/// Pages of a walk. A page begins with the last events of the page before, and the last page has only these.
fn walk(events: u64) -> u64 {
    let (page, anchors) = (u64::from(PAGE_EVENTS_MAX), ANCHORS_MAX as u64);
    match events {
        0 => 1,
        _ => 2 + events.saturating_sub(page).div_ceil(page - anchors),
    }
}

/// Requests for an open window: one walk from the end of the last walk, or two walks.
fn open_window_requests(window: Range, windows: &StreamWindows, density: &Density, now: Instant) -> u64 {
    let passed = clip(window, Range::new(window.start, now.max(window.start)));
    let events = passed.map_or(0, |passed| density.events_in(passed));
    match windows.held.get(&window.start).and_then(|held| held.walk.as_ref()) {
        Some(point) => 1 + events.saturating_sub(point.offset).div_ceil(u64::from(PAGE_EVENTS_MAX)),
        None if events == 0 => 1,
        None => 2 * walk(events),
    }
}

/// Requests of all spans. `pages` gives the requests for a number of events.
fn cost((mut planner, at_once, density): (SpanPlanner, usize, &Density), pages: impl Fn(u64) -> u64) -> u64 {
    let most = WALK_EVENTS_MAX as u64;
    let (mut requests, mut seconds) = (0, 0);
    let mut under_way = VecDeque::new();
    for _ in 0..SPANS_MAX {
        let free = at_once.max(1) - under_way.len();
        under_way.extend(std::iter::from_fn(|| planner.next_span()).take(free));
        let Some(span) = under_way.pop_front() else { break };
        let events = density.events_in(span);
        // A longer walk is cut, and another reading reads the rest of the span.
        requests +=
            events / most * pages(most) + if events < most || events % most > 0 { pages(events % most) } else { 0 };
        seconds += span.length().as_secs();
        planner.learn(span, events);
    }
    let left = planner.seconds_left();
    requests + u64::try_from(u128::from(requests) * u128::from(left) / u128::from(seconds.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::StreamRecord;

    const NOW: Instant = Instant::from_seconds(1_700_086_400);

    fn requests(plan: &StreamPlan, density: Option<&Density>) -> u64 {
        let settings = Settings::default();
        let windows = StreamWindows::new(StreamRecord::default(), [], settings.grid);
        estimate(plan, &windows, density, &settings, NOW).requests
    }

    #[test]
    fn pages_overlap_and_the_last_page_has_no_new_event() {
        let pages = [(0, 1), (1, 2), (1_001, 2), (1_002, 3), (1_994, 3), (1_995, 4), (6_000, 8)];
        assert_eq!(pages.map(|(events, _)| (events, walk(events))), pages);
    }

    #[test]
    fn an_unread_range_costs_two_walks_a_span_and_an_up_to_date_stream_costs_one_look_ahead() {
        assert_eq!(requests(&StreamPlan::default(), None), 1);
        // The planner reads an unknown window in four parts.
        let day = Settings::default().grid.window_of(NOW.minus(std::time::Duration::from_secs(86_400)));
        let unread = StreamPlan { unread: vec![day], ..StreamPlan::default() };
        assert_eq!(requests(&unread, None), 1 + 4 * 2);
        let busy = Density::of_points(vec![(day.start, 0.0), (day.end, 7_600.0)]);
        assert_eq!(requests(&unread, Some(&busy)), 1 + 4 * 2 * 3);
    }
}

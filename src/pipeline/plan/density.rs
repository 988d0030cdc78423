//! The density of a stream's events over time: from archived windows, or sampled from the service.

use crate::api::{ApiError, EventSource, PAGE_EVENTS_MAX, PageQuery};
use crate::model::{Instant, Range, RawEvent, Stream, TeamId};

use crate::pipeline::plan::window_index::Windows;

/// The mean of so many windows stands for later ones.
const WINDOWS_RECENT: usize = 14;
/// A full page gives so many points of the curve.
const POINTS_A_PAGE: usize = 16;
/// Requests that search for the last event.
const PROBES_MAX: u32 = 40;
/// The number of all events is found to one part in so many.
const EXACTNESS: u64 = 16;

/// A curve of events over time. It is even between two points, and follows the rate of the last windows beyond them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Density {
    /// Instants, and the events before them: both rise.
    points: Vec<(Instant, f64)>,
    /// Events a nanosecond before the first point and after the last.
    rate: f64,
}

impl Density {
    /// The density of archived windows; `None` if there are none.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn of_windows(windows: &Windows) -> Option<Self> {
        let mut points = Vec::with_capacity(2 * windows.len());
        let mut all = 0.0;
        for window in windows.values() {
            points.push((window.range.start, all));
            all += window.events as f64;
            points.push((window.range.end, all));
        }
        let recent = windows.values().rev().take(WINDOWS_RECENT);
        let (events, nanos) = recent.fold((0.0, 0.0), |(events, nanos), window| {
            (events + window.events as f64, nanos + window.range.length().as_nanos() as f64)
        });
        (nanos > 0.0).then(|| Self { points, rate: events / nanos })
    }

    #[cfg(test)]
    pub fn of_points(points: Vec<(Instant, f64)>) -> Self {
        Self { points, rate: 0.0 }
    }

    /// About how many events the range has.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate, and positive")]
    pub fn events_in(&self, range: Range) -> u64 {
        (self.before(range.end) - self.before(range.start)).round().max(0.0) as u64
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn before(&self, at: Instant) -> f64 {
        let apart = |from: Instant, to: Instant| (to.nanos() as f64) - (from.nanos() as f64);
        let next = self.points.partition_point(|(point, _)| *point <= at);
        match (next.checked_sub(1).and_then(|last| self.points.get(last)), self.points.get(next)) {
            (None, None) => 0.0,
            (None, Some((first, events))) => events - self.rate * apart(at, *first),
            (Some((last, events)), None) => events + self.rate * apart(*last, at),
            (Some((from, before)), Some((to, after))) => {
                before + (after - before) * apart(*from, at) / apart(*from, *to)
            }
        }
    }
}

/// Samples the density of a range from the service, in about a dozen requests for the time of the n-th event. `None` if the
/// service refuses.
///
/// # Errors
/// When it does not answer.
pub async fn sample(
    source: &dyn EventSource,
    team: &TeamId,
    stream: Stream,
    range: Range,
) -> Result<Option<Density>, ApiError> {
    let (start, stop) = (range.start.floor_second(), range.end.floor_second());
    let [start, stop] = [start, stop].map(|at| at.nanos().div_euclid(1_000_000_000));
    let sampler = Sampler { source, team, query: PageQuery { stream, start, stop, offset: 0, limit: 1, device: None } };
    match sampler.curve(range).await {
        Ok(points) => Ok(Some(Density { points, rate: 0.0 })),
        Err(error) if error.is_transient() => Err(error),
        Err(_) => Ok(None),
    }
}

struct Sampler<'a> {
    source: &'a dyn EventSource,
    team: &'a TeamId,
    query: PageQuery,
}

impl Sampler<'_> {
    async fn curve(&self, range: Range) -> Result<Vec<(Instant, f64)>, ApiError> {
        let first = self.page(0, PAGE_EVENTS_MAX).await?;
        let count = first.len() as u64;
        let mut points: Vec<(u64, Instant)> = Vec::new();
        let step = first.len().div_ceil(POINTS_A_PAGE).max(1);
        points.extend((0..).zip(&first).step_by(step).filter_map(|(nth, at)| Some((nth, (*at)?))));
        // There are at least `there` events, and none at the place `beyond`.
        let (mut there, mut beyond) = (count, (count == 0).then_some(0));
        for _ in 0..PROBES_MAX {
            let probe = match beyond {
                // Most lists end with their first page.
                None if there == count => count,
                None => there.saturating_mul(2),
                Some(beyond) if beyond - there <= there / EXACTNESS => break,
                Some(beyond) => there.midpoint(beyond),
            };
            match self.page(probe, 1).await?.first() {
                Some(at) => {
                    points.extend(at.map(|at| (probe, at)));
                    there = probe + 1;
                }
                None => beyond = Some(probe),
            }
        }
        let all = beyond.map_or(there, |beyond| there.midpoint(beyond));
        Ok(rising(points, all, range))
    }

    /// When the events of a page happened.
    async fn page(&self, offset: u64, limit: u32) -> Result<Vec<Option<Instant>>, ApiError> {
        let query = PageQuery { offset, limit, ..self.query.clone() };
        let served = self.source.page(self.team, &query).await?;
        Ok(served.body.events.iter().map(RawEvent::at).collect())
    }
}

/// The curve through the points that rise in time and in number, up to the number of all events.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn rising(mut points: Vec<(u64, Instant)>, all: u64, range: Range) -> Vec<(Instant, f64)> {
    points.sort_unstable();
    let mut curve: Vec<(Instant, f64)> = Vec::new();
    for (nth, at) in points {
        if at < range.end && curve.last().is_none_or(|(last, _)| *last < at) {
            curve.push((at, nth as f64));
        }
    }
    curve.push((range.end, all as f64));
    curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{WindowRecord, WindowState};
    use crate::pipeline::settings::Settings;

    fn day(day: i64) -> Instant {
        Instant::from_seconds(1_800_057_600 + day * 86_400)
    }

    fn days(from: i64, to: i64) -> Range {
        Range::new(day(from), day(to))
    }

    #[test]
    fn a_sampled_curve_is_flat_outside_and_even_between_its_points() {
        let points = vec![(0, day(10)), (100, day(11)), (90, day(9)), (1_000, day(20))];
        let curve = Density { points: rising(points, 1_200, days(0, 30)), rate: 0.0 };
        for (from, to, events) in [(0, 10, 0), (10, 11, 100), (11, 20, 900), (20, 30, 200), (25, 40, 100), (30, 60, 0)]
        {
            assert_eq!(curve.events_in(days(from, to)), events, "days {from} to {to}");
        }
        let empty = Density { points: rising(Vec::new(), 0, days(0, 30)), rate: 0.0 };
        assert_eq!(empty.events_in(days(0, 60)), 0);
    }

    #[test]
    fn windows_that_are_held_tell_of_those_that_are_not() {
        assert_eq!(Density::of_windows(&Windows::new()), None);
        let grid = Settings::default().grid;
        let window = |n: i64, events: u64| {
            let range = grid.window_of(day(n));
            let record = WindowRecord {
                stream: Stream::Activity,
                range,
                state: WindowState::Settled,
                reads: 2,
                requests: 4,
                events,
                late: 0,
                settled_at: None,
                rescans: 0,
                confirmed: Vec::new(),
                confirmed_at: None,
                unstable: Vec::new(),
                walk: None,
            };
            (range.start, record)
        };
        let windows = Windows::from([window(0, 50), window(1, 150)]);
        let density = Density::of_windows(&windows).unwrap();
        let start = grid.window_of(day(0)).start;
        let after = |from: u64, to: u64| {
            let at = |days: u64| start.plus(std::time::Duration::from_secs(days * 86_400));
            density.events_in(Range::new(at(from), at(to)))
        };
        assert_eq!([after(0, 1), after(1, 2), after(0, 2), after(2, 5)], [50, 150, 200, 300]);
    }
}

//! The density of a stream's events over time: from archived windows, or from sampled points. Pure.

use crate::model::{Instant, Range};

use crate::pipeline::plan::StreamWindows;

/// The mean of this number of windows is used for later ones.
const WINDOWS_RECENT: usize = 14;

/// A curve of events over time. The rate is constant between two points. Beyond the points it is the rate of the last windows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Density {
    /// Instants, and the number of events before each. Both rise.
    points: Vec<(Instant, f64)>,
    /// Events per nanosecond before the first point and after the last point.
    rate: f64,
}

impl Density {
    /// The density of archived windows; `None` without windows.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn of_windows(windows: &StreamWindows) -> Option<Self> {
        let windows = &windows.held;
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

    /// The density between sampled points: instants, and the number of events before each.
    pub fn of_points(points: Vec<(Instant, f64)>) -> Self {
        Self { points, rate: 0.0 }
    }

    /// The approximate number of events in the range.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{StreamRecord, WindowRecord, WindowState};
    use crate::model::Stream;
    use crate::pipeline::settings::Settings;

    fn day(day: i64) -> Instant {
        Instant::from_seconds(1_800_057_600 + day * 86_400)
    }

    fn days(from: i64, to: i64) -> Range {
        Range::new(day(from), day(to))
    }

    #[test]
    fn a_sampled_curve_is_flat_outside_and_even_between_its_points() {
        let points = [(10, 0.0), (11, 100.0), (20, 1_000.0), (30, 1_200.0)];
        let curve = Density::of_points(points.map(|(at, events)| (day(at), events)).to_vec());
        for (from, to, events) in [(0, 10, 0), (10, 11, 100), (11, 20, 900), (20, 30, 200), (25, 40, 100), (30, 60, 0)]
        {
            assert_eq!(curve.events_in(days(from, to)), events, "days {from} to {to}");
        }
        assert_eq!(Density::of_points(vec![(day(30), 0.0)]).events_in(days(0, 60)), 0);
    }

    #[test]
    fn archived_windows_give_the_density_of_the_others() {
        let grid = Settings::default().grid;
        let of = |held: Vec<WindowRecord>| StreamWindows::new(StreamRecord::default(), held, grid);
        assert_eq!(Density::of_windows(&of(Vec::new())), None);
        let window = |n: i64, events: u64| {
            let range = grid.window_of(day(n));
            WindowRecord {
                state: WindowState::Settled,
                reads: 2,
                requests: 4,
                events,
                ..WindowRecord::new(Stream::Activity, range)
            }
        };
        let density = Density::of_windows(&of(vec![window(0, 50), window(1, 150)])).unwrap();
        let start = grid.window_of(day(0)).start;
        let after = |from: u64, to: u64| {
            let at = |days: u64| start.plus(std::time::Duration::from_secs(days * 86_400));
            density.events_in(Range::new(at(from), at(to)))
        };
        assert_eq!([after(0, 1), after(1, 2), after(0, 2), after(2, 5)], [50, 150, 200, 300]);
    }
}

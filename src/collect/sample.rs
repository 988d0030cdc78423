//! The times of some events of a range, spread over its list: an estimate of the list's length and density.

use crate::api::{ApiError, EventSource, PAGE_EVENTS_MAX, PageQuery};
use crate::model::{Instant, Range, RawEvent, Stream, TeamId};

/// Points of the curve that a full page gives.
const POINTS_A_PAGE: usize = 16;
/// Requests that search for the last event.
const PROBES_MAX: u32 = 40;
/// The relative accuracy of the number of events: one part in this number.
const EXACTNESS: u64 = 16;

/// Samples how many events a range has before some instants. It sends about a dozen requests for the time of the n-th
/// event. Returns `None` if the service refuses.
///
/// # Errors
/// When it does not answer.
pub async fn sample(
    source: &dyn EventSource,
    team: &TeamId,
    stream: Stream,
    range: Range,
) -> Result<Option<Vec<(Instant, f64)>>, ApiError> {
    let (start, stop) = (range.start.floor_second(), range.end.floor_second());
    let [start, stop] = [start, stop].map(|at| at.nanos().div_euclid(1_000_000_000));
    let sampler = Sampler { source, team, query: PageQuery { stream, start, stop, offset: 0, limit: 1, device: None } };
    match sampler.curve(range).await {
        Ok(points) => Ok(Some(points)),
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

    /// The times of a page's events.
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

    fn day(day: i64) -> Instant {
        Instant::from_seconds(1_800_057_600 + day * 86_400)
    }

    #[test]
    fn a_curve_rises_in_time_and_in_number() {
        let points = vec![(0, day(10)), (100, day(11)), (90, day(9)), (1_000, day(20)), (1_100, day(30))];
        let curve = rising(points, 1_200, Range::new(day(0), day(30)));
        assert_eq!(curve, [(day(10), 0.0), (day(11), 100.0), (day(20), 1_000.0), (day(30), 1_200.0)]);
        assert_eq!(rising(Vec::new(), 0, Range::new(day(0), day(30))), [(day(30), 0.0)]);
    }
}

//! Ranges that would not hold still: each is left alone for a while, longer every time, and never for good. Pure.
//!
//! Such a range costs more requests than any other, at every poll, and brings nothing new while it lasts. That it is open is
//! the ledger's; when it is tried again only this process remembers, so that another one tries at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::Range;

use crate::pipeline::plan::ranges::missing;

/// After the first time a range is left alone for so long, then twice as long each time, up to the longest.
const LEFT_ALONE_MIN: Duration = Duration::from_secs(20 * 60);
const LEFT_ALONE_MAX: Duration = Duration::from_secs(6 * 3600);

/// One stream's backoff ranges: how often each failed, and until when it is left alone, by the monotonic clock. They are
/// disjoint.
#[derive(Debug, Default)]
pub struct RangeBackoff {
    held: BTreeMap<Range, (u32, Duration)>,
}

impl RangeBackoff {
    /// A reading of `range` ended without its holding still.
    pub fn note(&mut self, range: Range, now: Duration) {
        let times = self.forget(range).saturating_add(1);
        let alone = LEFT_ALONE_MIN.saturating_mul(1 << (times - 1).min(16)).min(LEFT_ALONE_MAX);
        self.held.insert(range, (times, now + alone));
    }

    /// `range` held still; how often what overlapped it had failed.
    pub fn forget(&mut self, range: Range) -> u32 {
        let mut times = 0;
        self.held.retain(|held, (failed, _)| {
            let overlaps = held.overlaps(&range);
            times = if overlaps { times.max(*failed) } else { times };
            !overlaps
        });
        times
    }

    /// What of `ranges` may be read now.
    pub fn without_paused(&self, ranges: &[Range], now: Duration) -> Vec<Range> {
        let alone = self.alone(now);
        ranges.iter().flat_map(|range| missing(*range, &alone)).collect()
    }

    /// Those of `ranges` in which nothing is left alone now.
    pub fn free_of_paused(&self, ranges: &[Range], now: Duration) -> Vec<Range> {
        let alone = self.alone(now);
        ranges.iter().filter(|range| !alone.iter().any(|held| held.overlaps(range))).copied().collect()
    }

    fn alone(&self, now: Duration) -> Vec<Range> {
        self.held.iter().filter(|(_, (_, until))| now < *until).map(|(range, _)| *range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Instant;

    fn range(from: i64, to: i64) -> Range {
        Range::new(Instant::from_seconds(from), Instant::from_seconds(to))
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_range_is_left_alone_longer_each_time_and_read_again_each_time() {
        let (mut backoff, day) = (RangeBackoff::default(), [range(0, 86_400)]);
        let mut now = Duration::ZERO;
        let mut alone = Vec::new();
        for _ in 0..10 {
            assert_eq!(backoff.without_paused(&day, now), day, "it is due");
            backoff.note(range(7, 8), now);
            let before = now;
            assert_eq!(backoff.without_paused(&day, now), [range(0, 7), range(8, 86_400)]);
            assert!(backoff.free_of_paused(&day, now).is_empty());
            while backoff.without_paused(&day, now).len() > 1 {
                now += seconds(600);
            }
            alone.push((now - before).as_secs());
        }
        assert_eq!(alone[..3], [1_200, 2_400, 4_800]);
        assert_eq!(alone[8..], [21_600, 21_600]);
        backoff.note(range(7, 8), now);
        assert_eq!(backoff.forget(range(0, 20)), 11, "it held still");
        assert_eq!(backoff.without_paused(&day, now), day);
    }

    #[test]
    fn what_was_given_up_as_a_whole_is_remembered_by_its_parts_when_it_is_read_in_parts() {
        let mut backoff = RangeBackoff::default();
        backoff.note(range(0, 100), seconds(0));
        backoff.note(range(10, 11), seconds(2_000));
        assert_eq!(backoff.without_paused(&[range(0, 100)], seconds(4_399)), [range(0, 10), range(11, 100)]);
        assert_eq!(backoff.without_paused(&[range(0, 100)], seconds(4_400)), [range(0, 100)]);
    }
}

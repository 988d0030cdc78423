//! Backoff of unstable ranges: each range is paused for a while. Each pause is longer, but no pause is endless. Pure.
//!
//! Such a range costs many requests at every poll, and gives no new events. The ledger records that it is open. Only
//! this process knows the time of the next attempt, so another process tries at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::Range;

/// The first pause of a range. Each further pause is twice as long, up to the longest.
const PAUSE_MIN: Duration = Duration::from_secs(20 * 60);
const PAUSE_MAX: Duration = Duration::from_secs(6 * 3600);

/// One stream's paused ranges: how often each failed, and until when it is paused, by the monotonic clock. They are disjoint.
#[derive(Debug, Default)]
pub struct RangeBackoff {
    held: BTreeMap<Range, (u32, Duration)>,
}

impl RangeBackoff {
    /// A reading of `range` ended as unstable.
    pub fn note(&mut self, range: Range, now: Duration) {
        let times = self.forget(range).saturating_add(1);
        let paused = PAUSE_MIN.saturating_mul(1 << (times - 1).min(16)).min(PAUSE_MAX);
        self.held.insert(range, (times, now + paused));
    }

    /// `range` is stable again. Returns how often the overlapping ranges had failed.
    pub fn forget(&mut self, range: Range) -> u32 {
        let mut times = 0;
        self.held.retain(|held, (failed, _)| {
            let overlaps = held.overlaps(&range);
            times = if overlaps { times.max(*failed) } else { times };
            !overlaps
        });
        times
    }

    /// The ranges that may not be read now, in order.
    pub fn paused(&self, now: Duration) -> Vec<Range> {
        self.held.iter().filter(|(_, (_, until))| now < *until).map(|(range, _)| *range).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Instant;
    use crate::model::ranges::missing;

    fn range(from: i64, to: i64) -> Range {
        Range::new(Instant::from_seconds(from), Instant::from_seconds(to))
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn free(backoff: &RangeBackoff, whole: Range, now: Duration) -> Vec<Range> {
        missing(whole, &backoff.paused(now))
    }

    #[test]
    fn each_pause_of_a_range_is_longer_and_it_is_read_after_each_pause() {
        let (mut backoff, day) = (RangeBackoff::default(), range(0, 86_400));
        let mut now = Duration::ZERO;
        let mut paused = Vec::new();
        for _ in 0..10 {
            assert_eq!(free(&backoff, day, now), [day], "it is due");
            backoff.note(range(7, 8), now);
            let before = now;
            assert_eq!(free(&backoff, day, now), [range(0, 7), range(8, 86_400)]);
            while free(&backoff, day, now).len() > 1 {
                now += seconds(600);
            }
            paused.push((now - before).as_secs());
        }
        assert_eq!(paused[..3], [1_200, 2_400, 4_800]);
        assert_eq!(paused[8..], [21_600, 21_600]);
        backoff.note(range(7, 8), now);
        assert_eq!(backoff.forget(range(0, 20)), 11, "it held still");
        assert_eq!(free(&backoff, day, now), [day]);
    }

    #[test]
    fn a_paused_range_keeps_its_failures_in_the_parts_that_are_read_later() {
        let mut backoff = RangeBackoff::default();
        backoff.note(range(0, 100), seconds(0));
        backoff.note(range(10, 11), seconds(2_000));
        assert_eq!(free(&backoff, range(0, 100), seconds(4_399)), [range(0, 10), range(11, 100)]);
        assert_eq!(free(&backoff, range(0, 100), seconds(4_400)), [range(0, 100)]);
    }
}

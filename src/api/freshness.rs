//! Detects stale answers: a cache between Annals and the service can serve an old answer.

use std::time::Duration;

use parking_lot::Mutex;

use crate::model::Instant;

/// `Date` can go back by this much between two answers, because several servers have different clocks.
const DATE_REGRESSION_MAX: Duration = Duration::from_secs(300);
/// After this many consecutive answers with increasing dates that are all too early, the service's clock was set back.
const REGRESSIONS_BELIEVED: u32 = 4;

/// The newest `Date` seen from the service.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    newest: Option<Instant>,
    /// The last date that went back, and the number of consecutive answers since then with increasing dates.
    back: Option<(Instant, u32)>,
}

impl Freshness {
    /// Checks one answer's `Age` (seconds) and `Date`.
    ///
    /// # Errors
    /// The reason why the answer is stale.
    pub fn check(&self, age: Option<u64>, date: Option<Instant>) -> Result<(), String> {
        if let Some(age) = age.filter(|&age| age > 0) {
            return Err(format!("stale: a cache on the way says that it is {age} s old"));
        }
        let Some(date) = date else { return Ok(()) };
        let mut seen = self.seen.lock();
        let newest = *seen.newest.get_or_insert(date);
        if date.plus(DATE_REGRESSION_MAX) >= newest {
            *seen = Seen { newest: Some(newest.max(date)), back: None };
            return Ok(());
        }
        let count = match seen.back {
            Some((last, count)) if date > last => count + 1,
            Some((_, count)) => count,
            None => 1,
        };
        if count >= REGRESSIONS_BELIEVED {
            *seen = Seen { newest: Some(date), back: None };
            return Ok(());
        }
        seen.back = Some((date, count));
        Err(format!("stale: it was made at {date}, an earlier one at {newest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: i64) -> Option<Instant> {
        Some(Instant::from_seconds(1_700_000_000 + seconds))
    }

    #[test]
    fn an_aged_answer_is_stale() {
        let fresh = Freshness::default();
        assert!(fresh.check(Some(1), second(0)).is_err());
        assert!(fresh.check(Some(0), second(0)).is_ok());
        assert!(fresh.check(None, None).is_ok());
    }

    #[test]
    fn a_date_can_go_back_only_a_little() {
        let fresh = Freshness::default();
        for (date, ok) in [(0, true), (1_000, true), (700, true), (699, false), (1_001, true), (600, false)] {
            assert_eq!(fresh.check(None, second(date)).is_ok(), ok, "{date}");
        }
    }

    #[test]
    fn a_cached_answer_is_stale_and_a_clock_that_was_set_back_is_accepted() {
        let fresh = Freshness::default();
        fresh.check(None, second(1_000_000)).unwrap();
        assert!((0..100).all(|_| fresh.check(None, second(0)).is_err()));
        let answers: Vec<bool> = (1..6).map(|n| fresh.check(None, second(n)).is_ok()).collect();
        assert_eq!(answers, [false, false, true, true, true]);
        assert!(fresh.check(None, second(1_000)).is_ok());
    }
}

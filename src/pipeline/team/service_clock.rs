//! The service's clock, which determines all ages.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::model::Instant;

/// The number of dates that are compared.
const DATES_KEPT: usize = 5;

/// The service's clock by its `Date` headers, or the machine's clock if it sends none. It is the median of the last few
/// dates, so one wrong date has no effect.
pub struct ServiceClock {
    clock: Arc<dyn Clock>,
    /// For each answer: its `Date` minus our monotonic time at its arrival.
    offsets: Mutex<VecDeque<Instant>>,
}

impl ServiceClock {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, offsets: Mutex::default() }
    }

    /// Forgets all dates.
    pub fn forget(&self) {
        self.offsets.lock().clear();
    }

    pub fn observe(&self, date: Option<Instant>) {
        let Some(date) = date else { return };
        let mut offsets = self.offsets.lock();
        offsets.push_back(date.minus(self.clock.monotonic()));
        if offsets.len() > DATES_KEPT {
            offsets.pop_front();
        }
    }

    pub fn now(&self) -> Instant {
        self.by_dates().unwrap_or_else(|| self.clock.now())
    }

    /// The seconds by which this clock is ahead of the machine's; `None` without a `Date` header.
    pub fn seconds_ahead(&self) -> Option<i64> {
        Some(self.by_dates()?.seconds() - self.clock.now().seconds())
    }

    fn by_dates(&self) -> Option<Instant> {
        let mut offsets: Vec<Instant> = self.offsets.lock().iter().copied().collect();
        offsets.sort_unstable();
        let middle = offsets.get(offsets.len().saturating_sub(1) / 2);
        middle.map(|offset| offset.plus(self.clock.monotonic()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn one_wrong_date_does_not_change_the_service_clock() {
        let at = |text: &str| text.parse::<Instant>().unwrap();
        let (true_date, ahead, behind) =
            (at("2026-11-20T08:00:00Z"), at("2099-01-01T00:00:00Z"), at("2001-01-01T00:00:00Z"));
        for dates in [
            vec![true_date],
            vec![true_date, ahead],
            vec![ahead, true_date, true_date],
            vec![behind, true_date, true_date],
            vec![true_date, ahead, true_date, behind, true_date],
            vec![ahead, ahead, true_date, true_date, true_date, true_date],
        ] {
            let clock = ServiceClock::new(Arc::new(SystemClock::new()));
            dates.iter().for_each(|date| clock.observe(Some(*date)));
            clock.observe(None);
            let (now, span) = (clock.now(), Duration::from_secs(60));
            assert!(now >= true_date.minus(span) && now <= true_date.plus(span), "{dates:?}: {now}");
        }
    }
}

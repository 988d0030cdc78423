//! The sandbox's clock: the machine's clock, a clock that stands still, or a clock with another speed.

use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, SystemClock};
use crate::model::Instant;

/// The last setting of the clock: its time, the real time of the setting, and its speed.
#[derive(Debug, Clone, Copy)]
struct Pace {
    set_at: i64,
    shown: i64,
    /// Sandbox seconds in one real second; 0: the clock stands still.
    speed: u32,
    /// No request has moved the clock: it is the machine's clock.
    is_real: bool,
}

/// The saved form of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedClock {
    pub now: Instant,
    pub speed: u32,
    pub is_real: bool,
}

pub(super) struct SandboxClock {
    system: SystemClock,
    pace: Mutex<Pace>,
}

impl SandboxClock {
    /// With `now` and without `speed`, the clock stands still.
    pub(super) fn new(now: Option<Instant>, speed: Option<u32>) -> Self {
        let system = SystemClock::new();
        let set_at = system.now().nanos();
        let pace = Pace {
            set_at,
            shown: now.map_or(set_at, Instant::nanos),
            speed: speed.unwrap_or(u32::from(now.is_none())),
            is_real: now.is_none() && speed.is_none_or(|speed| speed == 1),
        };
        Self { system, pace: Mutex::new(pace) }
    }

    pub(super) fn now(&self) -> Instant {
        self.shown(&self.pace.lock())
    }

    pub(super) fn speed(&self) -> u32 {
        self.pace.lock().speed
    }

    pub(super) fn advance(&self, by: Duration) {
        let now = self.now();
        self.set(now.plus(by));
    }

    pub(super) fn set(&self, now: Instant) {
        let mut pace = self.pace.lock();
        *pace = Pace { set_at: self.system.now().nanos(), shown: now.nanos(), is_real: false, ..*pace };
    }

    pub(super) fn set_speed(&self, speed: u32) {
        let mut pace = self.pace.lock();
        let shown = self.shown(&pace).nanos();
        *pace = Pace { set_at: self.system.now().nanos(), shown, speed, is_real: pace.is_real && speed == 1 };
    }

    pub(super) async fn sleep(&self, span: Duration) {
        self.system.sleep(span).await;
    }

    pub(super) fn saved(&self) -> SavedClock {
        let pace = self.pace.lock();
        SavedClock { now: self.shown(&pace), speed: pace.speed, is_real: pace.is_real }
    }

    /// A machine's clock becomes the machine's clock again; another clock continues at its saved time.
    pub(super) fn restore(&self, saved: SavedClock) {
        let set_at = self.system.now().nanos();
        let shown = if saved.is_real { set_at } else { saved.now.nanos() };
        *self.pace.lock() = Pace { set_at, shown, speed: saved.speed, is_real: saved.is_real };
    }

    fn shown(&self, pace: &Pace) -> Instant {
        let passed = self.system.now().nanos().saturating_sub(pace.set_at);
        Instant::from_nanos(pace.shown.saturating_add(passed.saturating_mul(i64::from(pace.speed))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_can_stop_run_faster_and_continue_after_loading() {
        let noon: Instant = "2026-11-20T12:00:00Z".parse().unwrap();
        let still = SandboxClock::new(Some(noon), None);
        assert_eq!((still.now(), still.speed()), (noon, 0));
        still.advance(Duration::from_secs(90));
        assert_eq!(still.now(), noon.plus(Duration::from_secs(90)));
        let fast = SandboxClock::new(Some(noon), Some(1_000_000));
        let first = fast.now();
        while fast.now() == first {}
        assert!(fast.now() > first && first >= noon);
        still.restore(SavedClock { now: noon, speed: 0, is_real: false });
        assert_eq!(still.saved(), SavedClock { now: noon, speed: 0, is_real: false });
        let real = SandboxClock::new(None, None);
        assert!(real.saved().is_real);
        real.set_speed(60);
        assert!(!real.saved().is_real && real.speed() == 60);
    }
}

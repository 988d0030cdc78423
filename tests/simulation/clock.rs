//! The machine's clock in virtual time: its shown time may jump, but elapsed time does not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::clock::Clock;
use annals::model::Instant;
use futures::future::BoxFuture;

use super::random::Draw;
use super::virtual_clock::VirtualClock;

pub struct SimClock {
    pub base: Arc<VirtualClock>,
    /// From each of these seconds since the epoch on, the machine's clock is wrong by this many seconds.
    steps: Vec<(i64, i64)>,
    chance: Mutex<Draw>,
    second: Duration,
}

impl SimClock {
    pub fn new(start: Instant, steps: Vec<(i64, i64)>, seed: u64, second: Duration) -> Self {
        Self { base: VirtualClock::at(start), steps, chance: Mutex::new(Draw::of(seed, "clock")), second }
    }

    /// The true time.
    pub fn truth(&self) -> Instant {
        self.base.now()
    }

    pub fn is_off(&self) -> bool {
        self.offset() != 0
    }

    fn offset(&self) -> i64 {
        let now = self.truth().seconds();
        self.steps.iter().rev().find(|(from, _)| *from <= now).map_or(0, |(_, offset)| *offset)
    }
}

impl Clock for SimClock {
    fn now(&self) -> Instant {
        let offset = Duration::from_secs(self.offset().unsigned_abs());
        if self.offset() < 0 { self.truth().minus(offset) } else { self.truth().plus(offset) }
    }

    fn monotonic(&self) -> Duration {
        self.base.monotonic()
    }

    /// The daemon checks every second whether a task is due. If none is, the clock takes longer steps, because these
    /// checks take most of a quiet day's run time.
    fn sleep(&self, span: Duration) -> BoxFuture<'_, ()> {
        self.base.sleep(if span == Duration::from_secs(1) { self.second } else { span })
    }

    fn random(&self) -> u64 {
        self.chance.lock().unwrap().next()
    }
}

//! The only source of the current time, sleep and randomness.

use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};

use crate::model::Instant;

/// The edge to time and randomness. Contract: `now` can jump (it is the machine's wall clock), `monotonic` never goes back,
/// `sleep` lasts at least the given time, `random` is uniform over 64 bits.
pub trait Clock: Send + Sync {
    /// The machine's wall clock. The service's `Date` header, not this clock, tells the ages of events.
    fn now(&self) -> Instant;
    /// Time since a fixed moment of this process.
    fn monotonic(&self) -> Duration;
    fn sleep(&self, span: Duration) -> BoxFuture<'_, ()>;
    fn random(&self) -> u64;
}

/// The machine's own clock.
pub struct SystemClock {
    started: std::time::Instant,
    random: Mutex<fastrand::Rng>,
}

impl SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where real time and chance are read")]
    pub fn new() -> Self {
        Self { started: std::time::Instant::now(), random: Mutex::new(fastrand::Rng::new()) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The machine's wall clock.
#[expect(clippy::disallowed_methods, reason = "the one place where real time is read")]
pub fn wall_clock() -> Instant {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Instant::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// 64 random bits that nobody can guess, even after seeing earlier ones.
pub fn system_random() -> u64 {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).expect("BUG: a system without random numbers");
    u64::from_le_bytes(bytes)
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        wall_clock()
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where the program sleeps")]
    fn sleep(&self, span: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(span))
    }

    fn random(&self) -> u64 {
        self.random.lock().u64(..)
    }
}

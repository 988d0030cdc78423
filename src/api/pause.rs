//! The wait that the service asks for with 429. It asks it of the token, so whoever asks anything with that token waits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;

/// Until when the service asked to be left alone; shared by all requests of one token.
pub struct Pause {
    clock: Arc<dyn Clock>,
    /// By the clock's monotonic time.
    until: Mutex<Duration>,
}

impl Pause {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, until: Mutex::default() }
    }

    /// The service asks for a wait from now on.
    pub(super) fn ask(&self, wait: Duration) {
        let until = self.clock.monotonic().saturating_add(wait);
        let mut held = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        *held = (*held).max(until);
    }

    /// Waits until nothing is asked for; how long that was.
    pub(super) async fn over(&self) -> Duration {
        let began = self.clock.monotonic();
        loop {
            let now = self.clock.monotonic();
            let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
            if until <= now {
                return now.saturating_sub(began);
            }
            self.clock.sleep(until - now).await;
        }
    }
}

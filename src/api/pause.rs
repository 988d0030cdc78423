//! The pause that the service demands with 429. The service limits a token, so all requests with that token wait.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;

/// The end of the demanded pause. All requests of one token share it.
pub struct Pause {
    clock: Arc<dyn Clock>,
    /// On the monotonic clock.
    until: Mutex<Duration>,
}

impl Pause {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, until: Mutex::default() }
    }

    /// Starts a pause now.
    pub(super) fn start(&self, wait: Duration) {
        let until = self.clock.monotonic().saturating_add(wait);
        let mut held = self.until.lock();
        *held = (*held).max(until);
    }

    /// Waits until the pause is over, and returns the waiting time.
    pub(super) async fn over(&self) -> Duration {
        let began = self.clock.monotonic();
        loop {
            let now = self.clock.monotonic();
            let until = *self.until.lock();
            if until <= now {
                return now.saturating_sub(began);
            }
            self.clock.sleep(until - now).await;
        }
    }
}

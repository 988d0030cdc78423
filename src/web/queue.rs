//! A queue of limited length, with a limited number of parallel turns.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::Clock;

use super::problem::Problem;

/// Maximum number of waiting requests.
const WAITING_MAX: usize = 32;
/// The minimum time that a request must have left when it gets its turn.
const LEFT_MIN: Duration = Duration::from_secs(1);

pub struct Queue {
    permits: Arc<Semaphore>,
    places: Semaphore,
}

/// A turn, until it is dropped.
pub type QueryPermit = OwnedSemaphorePermit;

impl Queue {
    pub fn new(at_once: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once)), places: Semaphore::new(WAITING_MAX) }
    }

    /// Waits for a turn. Returns it with the rest of `time`.
    ///
    /// # Errors
    /// When too many wait, or the time is over.
    pub async fn turn(&self, clock: &dyn Clock, time: Duration) -> Result<(QueryPermit, Duration), Problem> {
        let full = |_| Problem::busy("too many queries wait: try again in a moment");
        let _place = self.places.try_acquire().map_err(full)?;
        let asked = clock.monotonic();
        let busy = || Problem::busy("other queries are running: try again in a moment");
        let turn = tokio::select! {
            turn = self.permits.clone().acquire_owned() => turn.map_err(|_| busy())?,
            () = clock.sleep(time) => return Err(busy()),
        };
        let left = time.saturating_sub(clock.monotonic().saturating_sub(asked)).max(LEFT_MIN);
        Ok((turn, left))
    }
}

//! A queue of limited length, with a limited number of parallel turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    waiting: AtomicUsize,
}

/// A turn, until it is dropped.
pub type QueryPermit = OwnedSemaphorePermit;

impl Queue {
    pub fn new(at_once: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once)), waiting: AtomicUsize::new(0) }
    }

    /// Waits for a turn. Returns it with the rest of `time`.
    ///
    /// # Errors
    /// When too many wait, or the time is over.
    pub async fn turn(&self, clock: &dyn Clock, time: Duration) -> Result<(QueryPermit, Duration), Problem> {
        let _waiting = WaitingQuery::enter(&self.waiting)?;
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

/// A place in the queue.
struct WaitingQuery<'a>(&'a AtomicUsize);

impl<'a> WaitingQuery<'a> {
    fn enter(waiting: &'a AtomicUsize) -> Result<Self, Problem> {
        let line = Self(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            return Err(Problem::busy("too many queries wait: try again in a moment"));
        }
        Ok(line)
    }
}

impl Drop for WaitingQuery<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

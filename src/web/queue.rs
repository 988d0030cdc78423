//! Whose turn it is: a few at a time, and others in a line of bounded length.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::Clock;

use super::problem::Problem;

/// How many wait for their turn.
const WAITING_MAX: usize = 32;
/// Whoever gets a turn has at least this left of the time.
const LEFT_MIN: Duration = Duration::from_secs(1);

pub struct Queue {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// A turn, until it is dropped.
pub type Turn = OwnedSemaphorePermit;

impl Queue {
    pub fn new(at_once: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once)), waiting: AtomicUsize::new(0) }
    }

    /// A turn, and what is then left of `time`.
    ///
    /// # Errors
    /// When too many wait, or the time passes in waiting.
    pub async fn turn(&self, clock: &dyn Clock, time: Duration) -> Result<(Turn, Duration), Problem> {
        let _line = Line::enter(&self.waiting)?;
        let asked = clock.monotonic();
        let busy = || Problem::busy("others are asking: try again in a moment");
        let turn = tokio::select! {
            turn = self.permits.clone().acquire_owned() => turn.map_err(|_| busy())?,
            () = clock.sleep(time) => return Err(busy()),
        };
        let left = time.saturating_sub(clock.monotonic().saturating_sub(asked)).max(LEFT_MIN);
        Ok((turn, left))
    }
}

/// A place in the line of those who wait.
struct Line<'a>(&'a AtomicUsize);

impl<'a> Line<'a> {
    fn enter(waiting: &'a AtomicUsize) -> Result<Self, Problem> {
        let line = Self(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            return Err(Problem::busy("too many ask at once: try again in a moment"));
        }
        Ok(line)
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

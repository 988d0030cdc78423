//! The threads for heavy work (decoding, compressing, syncing).

use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;

/// The most heavy tasks of all teams at once. More would not finish sooner, and each takes memory.
static AT_ONCE: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, usize::from);
    Semaphore::new((processors + 1).clamp(3, 8))
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// On the runtime's threads for blocking work.
    Threads,
    /// On the caller's thread: the simulation has one thread.
    Inline,
}

impl Workers {
    /// Runs heavy work. A panic in it is a panic here.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        if self == Workers::Inline {
            return work();
        }
        let _place = AT_ONCE.acquire().await.expect("BUG: the semaphore is never closed");
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime shuts down: the result has no reader.
            Err(_) => std::future::pending().await,
        }
    }
}

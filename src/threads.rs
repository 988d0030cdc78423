//! Work on several threads.

use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::thread::{available_parallelism, scope};

use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

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
        returned(tokio::task::spawn_blocking(work).await).await
    }

    /// Runs a future on any thread of the runtime, so that several of them run at once. A panic in it is a panic here. If the
    /// caller is dropped, the future is dropped, too.
    pub async fn spawn<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> T {
        if self == Workers::Inline {
            return work.await;
        }
        let mut task = JoinSet::new();
        task.spawn(work);
        returned(task.join_next().await.expect("BUG: the set has one task")).await
    }
}

/// The result of a task.
async fn returned<T>(result: Result<T, JoinError>) -> T {
    match result {
        Ok(done) => done,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The runtime shuts down: the result has no reader.
        Err(_) => std::future::pending().await,
    }
}

/// Does both, at once if `at_once`.
pub fn both<A, B: Send>(at_once: bool, first: impl FnOnce() -> A, second: impl FnOnce() -> B + Send) -> (A, B) {
    if !at_once {
        return (first(), second());
    }
    scope(|scope| {
        let second = scope.spawn(second);
        let first = first();
        (first, second.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Applies `act` to each item, on up to `threads` threads at once, and returns the results in order. Work that waits for a disk
/// or a network needs more threads than there are processors.
///
/// # Errors
/// The first error of `act`; then no further items are begun.
pub fn each<T: Send, R: Send, E: Send>(
    items: impl IntoIterator<Item = T>,
    threads: usize,
    act: impl Fn(T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let mut items = items.into_iter();
    if threads <= 1 {
        return items.map(act).collect();
    }
    let mut done = Vec::new();
    loop {
        let some: Vec<T> = items.by_ref().take(threads).collect();
        if some.is_empty() {
            return Ok(done);
        }
        let made = scope(|scope| {
            let begun: Vec<_> = some.into_iter().map(|item| scope.spawn(|| act(item))).collect();
            begun.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        let made: Result<Vec<R>, E> = made;
        done.extend(made?);
    }
}

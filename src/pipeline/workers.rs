//! Where heavy work (decoding, compressing, syncing) is done.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Heavy work at once, of all teams: more of it is not done sooner, and each takes memory.
static AT_ONCE: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, usize::from);
    Semaphore::new((processors + 1).clamp(3, 8))
});

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// On the runtime's threads for blocking work, beside the reading.
    Threads,
    /// In place: the simulation has one thread.
    Inline,
}

impl Workers {
    /// Does heavy work; a panic in it is a panic here.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.begin(work).end().await
    }

    /// Begins heavy work, which goes on by itself.
    pub fn begin<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Work<T> {
        match self {
            Workers::Inline => Work::Done(work()),
            Workers::Threads => Work::UnderWay(spawn(work)),
        }
    }
}

/// Begins heavy work on the runtime's threads for blocking work, as soon as there is a place.
fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(async {
        let _place = AT_ONCE.acquire().await.expect("BUG: the semaphore is never closed");
        joined(tokio::task::spawn_blocking(work).await).await
    })
}

/// Heavy work that has begun.
pub enum Work<T> {
    Done(T),
    UnderWay(JoinHandle<T>),
}

impl<T> Work<T> {
    pub fn is_done(&self) -> bool {
        match self {
            Work::Done(_) => true,
            Work::UnderWay(work) => work.is_finished(),
        }
    }

    /// Waits until it is done; a panic in it is a panic here.
    pub async fn wait(&mut self) {
        if let Work::UnderWay(work) = self {
            *self = Work::Done(joined(work.await).await);
        }
    }

    /// What it comes to; a panic in it is a panic here.
    pub async fn end(self) -> T {
        match self {
            Work::Done(done) => done,
            Work::UnderWay(work) => joined(work.await).await,
        }
    }
}

/// What blocking work came to; a panic in it is a panic here.
async fn joined<T>(done: Result<T, tokio::task::JoinError>) -> T {
    match done {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down: whoever waits here is not heard any more.
        Err(_) => std::future::pending().await,
    }
}

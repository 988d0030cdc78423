//! Where heavy work (decoding, compressing, syncing) is done.

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
            Workers::Threads => Work::UnderWay(tokio::task::spawn_blocking(work)),
        }
    }
}

/// Heavy work that has begun.
pub enum Work<T> {
    Done(T),
    UnderWay(tokio::task::JoinHandle<T>),
}

impl<T> Work<T> {
    pub fn is_done(&self) -> bool {
        match self {
            Work::Done(_) => true,
            Work::UnderWay(work) => work.is_finished(),
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
pub async fn joined<T>(done: Result<T, tokio::task::JoinError>) -> T {
    match done {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down: whoever waits here is not heard any more.
        Err(_) => std::future::pending().await,
    }
}

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
        match self {
            Workers::Inline => work(),
            Workers::Threads => joined(tokio::task::spawn_blocking(work).await).await,
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

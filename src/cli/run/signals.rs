//! The signals that end the daemon or make it read its configuration again.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// What a signal asks of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRequest {
    Reload,
    Stop,
}

/// The signals that the daemon handles.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// # Errors
    /// When the system refuses a handler.
    pub fn new() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(|source| Error::io("cannot listen for signals", source));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hangup.recv() => SignalRequest::Reload,
        }
    }
}

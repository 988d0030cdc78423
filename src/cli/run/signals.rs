//! The signals that end the daemon or make it read its configuration again.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// The order that a signal gives to the daemon.
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

/// Keeps a SIGHUP from now on, for [`Signals::next`]. Without a handler, it ends the program.
///
/// # Errors
/// When the system refuses a handler.
pub fn hangup() -> Result<Signal, Error> {
    listen(SignalKind::hangup())
}

fn listen(kind: SignalKind) -> Result<Signal, Error> {
    signal(kind).map_err(|source| Error::io("cannot listen for signals", source))
}

impl Signals {
    /// # Errors
    /// When the system refuses a handler.
    pub fn new(hangup: Signal) -> Result<Self, Error> {
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())?, hangup })
    }

    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            _ = self.hangup.recv() => SignalRequest::Reload,
        }
    }
}

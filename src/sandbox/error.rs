//! Why a sandbox did not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use super::saved::SavedError;

#[derive(Debug, Error)]
pub enum SandboxError {
    #[error("the sandbox cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the sandbox cannot make {asked} {what}: the maximum is {most}")]
    TooMany { what: &'static str, asked: u64, most: u64 },
    #[error("{days} days up to {end} are not within 2000 to 2100: the sandbox makes data for these years only")]
    OutsideTime { days: u32, end: String },
    #[error("cannot load the saved sandbox: {0}")]
    Saved(#[from] SavedError),
    #[error("cannot read the saved sandbox {}: {source}", path.display())]
    Load { path: PathBuf, source: io::Error },
    #[error("cannot write the saved sandbox {}: {source}", path.display())]
    Save { path: PathBuf, source: io::Error },
    #[error("{what} {text:?} is not understood: {reason}")]
    Option { what: &'static str, text: String, reason: String },
    #[error("the sandbox's address cannot be printed: {0}")]
    Print(io::Error),
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
}

impl SandboxError {
    /// Whether an argument or its file is at fault, not the system.
    pub fn is_wrong_use(&self) -> bool {
        use SandboxError::{Listen, Print, Save, Signals};
        !matches!(self, Listen { .. } | Save { .. } | Print(_) | Signals(_))
    }
}

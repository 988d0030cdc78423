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
    #[error("the sandbox cannot make {asked} {what}: at most {most}")]
    TooMany { what: &'static str, asked: u64, most: u64 },
    #[error("the sandbox's data lies between 2000 and 2100: {days} days up to {end} do not")]
    OutsideTime { days: u32, end: String },
    #[error("the saved sandbox is not taken up: {0}")]
    Saved(#[from] SavedError),
    #[error("the file {} of a saved sandbox: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{what} {text:?} is not understood: {reason}")]
    Option { what: &'static str, text: String, reason: String },
    #[error("the sandbox's address cannot be printed: {0}")]
    Print(io::Error),
}

//! Errors of the client's configuration.

use std::path::PathBuf;

use thiserror::Error;

/// An error of the client's configuration. Never contains the token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetupError {
    #[error("the base URL {reason}")]
    BaseUrl { reason: String },
    #[error("{what} {reason}")]
    Token { what: String, reason: &'static str },
    #[error("the token file {} cannot be read: {reason}", path.display())]
    TokenFile { path: PathBuf, reason: String },
    #[error("the HTTP client cannot be set up: {reason}")]
    Client { reason: String },
}

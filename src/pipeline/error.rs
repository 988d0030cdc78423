//! Why a round, or a part of it, was not done.

use thiserror::Error;

use crate::api::ApiError;
use crate::archive::ArchiveError;

/// Why a round, or a part of it, was not done.
#[derive(Debug, Error)]
pub enum RoundError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

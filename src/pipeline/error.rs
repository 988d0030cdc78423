//! The errors of a round.

use thiserror::Error;

use crate::api::ApiError;
use crate::archive::ArchiveError;

/// Why a round, or a part of a round, failed.
#[derive(Debug, Error)]
pub enum RoundError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

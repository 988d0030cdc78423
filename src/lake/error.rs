//! The errors of publishing, reading and checking a table.

use std::fmt::Display;

use thiserror::Error;

use crate::archive::ArchiveError;
use crate::store::StoreError;

#[derive(Debug, Error)]
pub enum LakeError {
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{path}: {reason}")]
    Damaged { path: String, reason: String },
    #[error("column {name} {what}")]
    Column { name: String, what: String },
    /// `source` is the error of the first of the tables.
    #[error("cannot publish {} of {all} tables ({}): {source}", .tables.len(), .tables.join(", "))]
    NotPublished { tables: Vec<&'static str>, all: usize, source: Box<LakeError> },
    #[error("other publishers were faster {tries} times in a row: publish again later")]
    Contended { tries: usize },
}

impl LakeError {
    pub(super) fn damaged(path: &str, reason: impl Display) -> Self {
        LakeError::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }

    /// Whether a later try can succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            LakeError::Archive(error) => error.is_transient(),
            LakeError::NotPublished { source, .. } => source.is_transient(),
            LakeError::Store(StoreError::Io { .. }) | LakeError::Contended { .. } => true,
            LakeError::Store(_) | LakeError::Damaged { .. } | LakeError::Column { .. } => false,
        }
    }
}

//! Errors in report files and in the parameters of a report.

use std::path::PathBuf;

use thiserror::Error;

use super::or_near;

#[derive(Debug, Error)]
pub enum CatalogError {
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// The file has a syntax error.
    #[error("{path}:{line}: {message}")]
    Malformed { path: PathBuf, line: usize, message: String },
    #[error("{path}: {other} has the same report id {id} or name: change the id and the name of one of the files")]
    Twice { path: PathBuf, id: String, other: PathBuf },
    #[error("no report has the name {name:?}{}; `annals report list` shows them all", or_near(near))]
    Unknown { name: String, near: Vec<String> },
    /// A parameter is unknown or missing, or has an invalid value.
    #[error("report {report}: {message}")]
    Param { report: String, message: String },
}

impl CatalogError {
    pub(super) fn at(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        CatalogError::Malformed { path: path.into(), line, message: message.into() }
    }

    /// Whether the faulty file would be the report `name`, judged by its file name.
    pub(super) fn is_about(&self, name: &str) -> bool {
        let path = match self {
            CatalogError::Unreadable { path, .. }
            | CatalogError::Malformed { path, .. }
            | CatalogError::Twice { path, .. } => path,
            CatalogError::Unknown { .. } | CatalogError::Param { .. } => return false,
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
        let name = name.to_lowercase();
        stem == name || stem.split_once('-').is_some_and(|(id, slug)| id == name || slug == name)
    }
}

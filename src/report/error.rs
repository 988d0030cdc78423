//! What can go wrong between a question and its answer.

use std::path::PathBuf;

use thiserror::Error;

/// How the engine, and what it is made with, say that memory is short.
const SHORT_OF_MEMORY: [&str; 4] = ["Out of Memory Error", "bad_alloc", "bad allocation", "Cannot allocate memory"];

/// Stands before what went wrong with the archive, and tells it from a wrong query.
pub(super) const ARCHIVE_FAILED: &str = "the archive cannot be read: ";

#[derive(Debug, Error)]
pub enum ReportError {
    /// The query is wrong, or asks for what cannot be computed.
    #[error("the query cannot be answered: {message}")]
    Query {
        message: String,
        /// Counted from 1 within the query, where the engine tells it.
        line: Option<usize>,
    },
    /// The query of a report's file is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Report { path: PathBuf, line: usize, message: String },
    /// The engine, or a file that it read, failed.
    #[error("the SQL engine failed: {0}")]
    Engine(String),
    #[error("the query was stopped")]
    Interrupted,
    /// The cache of files of a bucket failed, or cannot hold what the question needs.
    #[error("{0}")]
    Cache(String),
    #[error("cannot make a directory for spilling in {}", directory.display())]
    Spill { directory: PathBuf, source: std::io::Error },
    #[error("cannot write the result as {format}: {detail}")]
    Format { format: &'static str, detail: String },
    #[error("cannot write the result")]
    Output(#[from] std::io::Error),
    #[error("{path}: {what}: nothing was read; `annals verify` names every such file")]
    Irregular { path: String, what: String },
    #[error("{path}: the path is not UTF-8, which the SQL engine cannot read")]
    Path { path: String },
}

impl ReportError {
    /// Whether the question is at fault, not the world.
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, ReportError::Query { .. } | ReportError::Report { .. } | ReportError::Format { .. })
    }

    /// Whether the answer needed more memory, or more room to spill, than the engine may use.
    pub fn is_short_of_memory(&self) -> bool {
        let message = self.to_string();
        SHORT_OF_MEMORY.iter().any(|words| message.contains(words))
    }

    pub(super) fn query(message: impl Into<String>) -> Self {
        ReportError::Query { message: message.into(), line: None }
    }

    /// Sorts an error of the engine. `names_our_file` tells whether its text names a file of the archive: then it is not
    /// the query that is wrong.
    pub(super) fn of_engine(error: &duckdb::Error, names_our_file: impl Fn(&str) -> bool) -> Self {
        let full = match error {
            duckdb::Error::DuckDBFailure(_, Some(message)) => message.clone(),
            other => other.to_string(),
        };
        if full.starts_with("INTERRUPT Error") {
            return ReportError::Interrupted;
        }
        let world = ["IO Error", "Out of Memory Error", "INTERNAL Error", "FATAL Error", "Permission Error"];
        let message = short(&full);
        if let Some((_, archive)) = message.split_once(ARCHIVE_FAILED) {
            return ReportError::Engine(format!("{ARCHIVE_FAILED}{archive}"));
        }
        // A confined engine opens live files alone: whoever asks for another asks wrongly. One that a commit has taken away
        // meanwhile it takes for a pattern, which it may not look for either.
        let is_ours = names_our_file(&full);
        let is_world = world.iter().any(|kind| full.starts_with(kind)) || is_ours;
        if full.contains("disabled by configuration") && !is_ours {
            return ReportError::query("a report reads the archive's views alone: no files, no network, no settings");
        }
        if is_world { ReportError::Engine(message) } else { ReportError::Query { message, line: line_of(&full) } }
    }
}

/// The line that the engine's drawing points at: `LINE 3: …`.
fn line_of(message: &str) -> Option<usize> {
    let drawn = message.lines().find_map(|line| line.trim().strip_prefix("LINE "))?;
    drawn.split(':').next()?.parse().ok()
}

/// The engine's message without the drawing of where in the query it points, on one line.
fn short(message: &str) -> String {
    let told = message.lines().map(str::trim).take_while(|line| !line.starts_with("LINE "));
    told.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawing_is_left_out() {
        let message = "Binder Error: Referenced column \"x\" not found!\nCandidate bindings: \"y\"\n\nLINE 1: SELECT x\n               ^";
        assert_eq!(short(message), "Binder Error: Referenced column \"x\" not found!; Candidate bindings: \"y\"");
    }
}

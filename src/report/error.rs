//! Errors of queries and reports.

use std::path::PathBuf;

use thiserror::Error;

/// The messages for a lack of memory, from the engine and its libraries.
const SHORT_OF_MEMORY: [&str; 4] = ["Out of Memory Error", "bad_alloc", "bad allocation", "Cannot allocate memory"];

/// A prefix that distinguishes an error of the archive from a wrong query.
pub(super) const ARCHIVE_FAILED: &str = "the archive cannot be read: ";
/// The end of the message about a view that the page's processes cannot read: the query is at fault, not the archive.
pub(super) const OUT_OF_REACH: &str = "from the place of the ledger: use `annals sql`";

#[derive(Debug, Error)]
pub enum ReportError {
    /// The query is wrong, or cannot be computed.
    #[error("the query cannot be answered: {message}")]
    Query {
        message: String,
        /// The line in the query, counted from 1, if the engine gives it.
        line: Option<usize>,
    },
    /// The query of a report's file is wrong.
    #[error("{}:{line}: {message}", path.display())]
    Report { path: PathBuf, line: usize, message: String },
    /// The engine failed, or a file that it reads.
    #[error("the SQL engine failed: {0}")]
    Engine(String),
    #[error("the query was stopped")]
    Interrupted,
    /// The cache failed.
    #[error("{0}")]
    Cache(String),
    /// The query needs more bytes of files than the cache holds.
    #[error("{0}")]
    TooLarge(String),
    #[error("cannot create a directory for spill files in {}", directory.display())]
    Spill { directory: PathBuf, source: std::io::Error },
    #[error("cannot write the result as {format}: {detail}")]
    Format { format: &'static str, detail: String },
    #[error("cannot write the result")]
    Output(#[from] std::io::Error),
    #[error("{path}: {what}: the query did not run; `annals verify` names every such file")]
    Irregular { path: String, what: String },
    #[error("{path}: the SQL engine cannot read a path that is not UTF-8")]
    Path { path: String },
}

impl ReportError {
    /// Whether the query is at fault, not the system.
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, ReportError::Query { .. } | ReportError::Report { .. } | ReportError::Format { .. })
    }

    /// Whether the query needed more memory or spill space than its limit.
    pub fn is_short_of_memory(&self) -> bool {
        let message = self.to_string();
        SHORT_OF_MEMORY.iter().any(|words| message.contains(words))
    }

    pub(super) fn query(message: impl Into<String>) -> Self {
        ReportError::Query { message: message.into(), line: None }
    }

    /// Classifies an error of the engine. `advice_on` gives advice if a text names a file of the archive: then the query is not at
    /// fault.
    pub(super) fn of_engine(error: &duckdb::Error, advice_on: impl Fn(&str) -> Option<&'static str>) -> Self {
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
            return match archive.contains(OUT_OF_REACH) {
                true => ReportError::query(archive),
                false => ReportError::Engine(format!("{ARCHIVE_FAILED}{archive}")),
            };
        }
        // A confined engine opens only live files, so a query for another file is wrong. If a commit removed a live file, the engine
        // takes its path for a pattern, which is also forbidden.
        if let Some(advice) = advice_on(&full) {
            return ReportError::Engine(format!("{message}: {advice}"));
        }
        if full.contains("disabled by configuration") {
            return ReportError::query(
                "a report reads the archive's views alone: no files and no network, and it changes no setting",
            );
        }
        match world.iter().any(|kind| full.starts_with(kind)) {
            true => ReportError::Engine(message),
            false => ReportError::Query { message, line: line_of(&full) },
        }
    }
}

/// The line in the engine's message: `LINE 3: …`.
fn line_of(message: &str) -> Option<usize> {
    let drawn = message.lines().find_map(|line| line.trim().strip_prefix("LINE "))?;
    drawn.split(':').next()?.parse().ok()
}

/// The engine's message on one line, without the drawing of the position in the query.
fn short(message: &str) -> String {
    let lines = message.lines().map(str::trim).take_while(|line| !line.starts_with("LINE "));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_drawing_of_an_error_is_omitted() {
        let message = "Binder Error: Referenced column \"x\" not found!\nCandidate bindings: \"y\"\n\nLINE 1: SELECT x\n               ^";
        assert_eq!(short(message), "Binder Error: Referenced column \"x\" not found!; Candidate bindings: \"y\"");
    }
}

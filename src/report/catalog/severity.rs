//! The detections among a report's rows.

use std::str::FromStr;

pub use crate::model::Severity;

/// Which rows of a report are detections, and their severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeverityRule {
    /// Every row.
    Every(Severity),
    /// Each row with a value in the column `severity`, which is NULL in other rows.
    Column,
}

impl SeverityRule {
    /// The header's form: a severity, or `column`.
    pub const fn as_str(self) -> &'static str {
        match self {
            SeverityRule::Every(severity) => severity.as_str(),
            SeverityRule::Column => "column",
        }
    }
}

impl FromStr for SeverityRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "column" => Ok(SeverityRule::Column),
            other => other.parse().map(SeverityRule::Every).map_err(|error: String| format!("{error}, or column")),
        }
    }
}

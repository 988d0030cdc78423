//! Which rows of a report are detections.

use std::str::FromStr;

pub use crate::model::Severity;

/// Which rows of a report are detections, and how grave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeverityRule {
    /// Every row.
    Every(Severity),
    /// What the column `severity` says; NULL where the row is no detection.
    Column,
}

impl SeverityRule {
    /// As in a header: a severity, or `column`.
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

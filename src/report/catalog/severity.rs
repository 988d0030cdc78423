//! How grave what a report detects is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// From the mildest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Low,
    Medium,
    High,
    Critical,
}

impl Severity {
    pub const ALL: [Severity; 5] =
        [Severity::Info, Severity::Low, Severity::Medium, Severity::High, Severity::Critical];

    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Severity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Severity::ALL.into_iter().find(|severity| severity.as_str() == text);
        found.ok_or_else(|| format!("unknown severity {text:?}: expected info, low, medium, high or critical"))
    }
}

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

//! The machine-readable description of a pack.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{Digest, Instant};
use crate::report::{LedgerHead, Severity};

pub const FORMAT: &str = "annals evidence pack";
pub const VERSION: u32 = 1;

/// `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    pub archive_id: String,
    /// `None` for all teams.
    pub team: Option<String>,
    /// The names of the teams, by id.
    #[serde(default)]
    pub team_names: BTreeMap<String, String>,
    /// Half-open.
    pub from: Instant,
    pub to: Instant,
    pub zone: String,
    pub made_at: Instant,
    pub annals_version: String,
    /// Whether people, computers and addresses have pseudonyms, whose key nobody has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pseudonymised: bool,
    /// The verdict of `verify`, and the number of faults.
    pub verdict: String,
    pub faults: u64,
    /// Number of gaps inside the period.
    pub gaps: u64,
    pub ledger: Vec<LedgerHead>,
    pub reports: Vec<PackedReport>,
    /// Reports that are not in the pack, with the reason.
    pub left_out: BTreeMap<String, String>,
    /// All files except this one and `SHA256SUMS`.
    pub files: Vec<PackedFile>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PackedReport {
    pub id: String,
    pub name: String,
    pub title: String,
    pub rows: u64,
    /// `None` if the report detects nothing.
    pub detections: Option<BTreeMap<Severity, u64>>,
    /// The digest of the query's file under `sql/`.
    pub query_sha256: Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackedFile {
    pub path: String,
    pub bytes: u64,
    pub sha256: Digest,
}

impl Manifest {
    /// The number of detections in all reports.
    pub fn findings(&self) -> u64 {
        let counts = self.reports.iter().filter_map(|report| report.detections.as_ref()).flat_map(BTreeMap::values);
        // A hostile manifest can hold any number.
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }
}

//! What verifying found, for people and for machines.

use std::fmt;

use serde::Serialize;

use crate::model::{Digest, Instant, LedgerSeq, TeamId};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FaultCode {
    /// `archive.json` is missing or is not one.
    Manifest,
    /// Written by another version: cannot be verified by this program.
    Version,
    /// A ledger line that does not check, or does not follow the one before.
    ChainBreak,
    /// The numbers of ledger lines do not follow one another.
    SeqGap,
    /// A ledger line of another archive or team.
    ArchiveId,
    /// A ledger line that checks and says something impossible.
    State,
    /// The last ledger line is not whole.
    TornTail,
    /// A head remembered elsewhere is not in the ledger.
    HeadRollback,
    /// A file's bytes are not those that were committed.
    FileHash,
    FileMissing,
    FileSize,
    /// A file or a line stands where it does not belong.
    PathMismatch,
    /// A file that no ledger names.
    OrphanFile,
    /// A second copy of a live file.
    DupFile,
    RowCount,
    RowDigest,
    /// What stands there cannot be read as a file: a link, an error of the disk.
    Unreadable,
}

impl FaultCode {
    /// `FILE_HASH`
    pub fn as_str(self) -> &'static str {
        match self {
            FaultCode::Manifest => "MANIFEST",
            FaultCode::Version => "VERSION",
            FaultCode::ChainBreak => "CHAIN_BREAK",
            FaultCode::SeqGap => "SEQ_GAP",
            FaultCode::ArchiveId => "ARCHIVE_ID",
            FaultCode::State => "STATE",
            FaultCode::TornTail => "TORN_TAIL",
            FaultCode::HeadRollback => "HEAD_ROLLBACK",
            FaultCode::FileHash => "FILE_HASH",
            FaultCode::FileMissing => "FILE_MISSING",
            FaultCode::FileSize => "FILE_SIZE",
            FaultCode::PathMismatch => "PATH_MISMATCH",
            FaultCode::OrphanFile => "ORPHAN_FILE",
            FaultCode::DupFile => "DUP_FILE",
            FaultCode::RowCount => "ROW_COUNT",
            FaultCode::RowDigest => "ROW_DIGEST",
            FaultCode::Unreadable => "UNREADABLE",
        }
    }
}

/// One fault: what, where, and how it shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyFault {
    pub code: FaultCode,
    /// A path, with a line number where it is a ledger's.
    pub object: String,
    pub detail: String,
}

/// How many of those that should be are as they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    pub good: u64,
    pub total: u64,
}

impl Counts {
    pub fn add(&mut self, good: u64, total: u64) {
        self.good += good;
        self.total += total;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.good, self.total)
    }
}

/// What verifying found of one team.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TeamReport {
    /// None when no line of its ledger could be read.
    pub team_id: Option<TeamId>,
    pub ledger: String,
    pub commits: Counts,
    pub files: Counts,
    pub rows: Counts,
    /// The number, hash and time of the last line that checks; the hash is what to remember elsewhere.
    pub last_seq: LedgerSeq,
    pub head: Option<Digest>,
    pub first_at: Option<Instant>,
    pub last_at: Option<Instant>,
    /// The first line that does not check, counted from 1; the damage reaches to the last line.
    pub first_bad_line: Option<u64>,
    /// Files of the last line that are not in place yet.
    pub pending: u64,
}

/// From the weakest: a report never says more than it saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    Broken,
    /// This program cannot tell.
    #[default]
    Unverifiable,
    /// Everything agrees with everything else; whether the end was cut off, only a head kept elsewhere can tell.
    SelfConsistent,
    /// The same, and every head that was given is in it.
    HoldsHeads,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Broken => "BROKEN",
            Verdict::Unverifiable => "UNVERIFIABLE",
            Verdict::SelfConsistent => "SELF-CONSISTENT (unanchored)",
            Verdict::HoldsHeads => "SELF-CONSISTENT, holds every given head",
        })
    }
}

/// Everything that verifying found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VerifyReport {
    pub verdict: Verdict,
    pub archive_id: Option<String>,
    pub heads_asked: usize,
    pub commits: Counts,
    pub files: Counts,
    pub rows: Counts,
    /// Files of last lines that are not in place yet, and staged files that no line names: no fault.
    pub pending: u64,
    pub teams: Vec<TeamReport>,
    pub faults: Vec<VerifyFault>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn fault(&mut self, code: FaultCode, object: impl fmt::Display, detail: impl fmt::Display) {
        self.faults.push(VerifyFault { code, object: object.to_string(), detail: detail.to_string() });
    }

    pub(super) fn conclude(&mut self) {
        for team in &self.teams {
            self.commits.add(team.commits.good, team.commits.total);
            self.files.add(team.files.good, team.files.total);
            self.rows.add(team.rows.good, team.rows.total);
            self.pending += team.pending;
        }
        let is_unknown = self.faults.iter().all(|f| f.code == FaultCode::Version);
        self.verdict = match self.faults.as_slice() {
            [] if self.heads_asked > 0 => Verdict::HoldsHeads,
            [] => Verdict::SelfConsistent,
            _ if is_unknown => Verdict::Unverifiable,
            _ => Verdict::Broken,
        };
    }
}

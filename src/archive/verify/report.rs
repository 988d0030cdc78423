//! What verifying found, for people and for machines.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::model::{Digest, Instant, LedgerSeq, TeamId};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultCode {
    /// `archive.json` is missing or is not one.
    Manifest,
    /// Written by another version: cannot be verified by this program.
    Version,
    /// A ledger line that does not check, or does not follow the one before.
    ChainBreak,
    /// An object of a ledger that is written once was written again or deleted: the bucket keeps older versions.
    Rewritten,
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
    /// The ledger and a head remembered elsewhere tell two histories.
    Fork,
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
    /// The digest of a file's rows is not the one that was committed: other rows, not only other bytes.
    RowRoot,
    /// The salt of a month is not there or not the one that a line names: its rows' digests cannot be checked.
    Salt,
    /// What stands there cannot be read as a file: a link, an error of the disk.
    Unreadable,
    /// A line was written before the one that it follows, by the machine's clock. A notice.
    TimeRegression,
    /// A line was written later than now. A notice.
    TimeFuture,
    /// Nothing was committed for long: either nothing was read, or the ledger's end was cut off. A notice.
    StaleHead,
    /// A signature that is not of what stands there, or one that is missing.
    BadSig,
    /// Signed by a key that nobody who verifies knows.
    UnknownKey,
    /// The archive is signed by another key than the one that was given.
    KeyMismatch,
    /// The ledger says of a stretch of time that events were, or may have been, lost upstream. A notice.
    CoverageGap,
}

impl FaultCode {
    /// `FILE_HASH`
    pub fn as_str(self) -> &'static str {
        match self {
            FaultCode::Manifest => "MANIFEST",
            FaultCode::Version => "VERSION",
            FaultCode::ChainBreak => "CHAIN_BREAK",
            FaultCode::Rewritten => "REWRITTEN",
            FaultCode::SeqGap => "SEQ_GAP",
            FaultCode::ArchiveId => "ARCHIVE_ID",
            FaultCode::State => "STATE",
            FaultCode::TornTail => "TORN_TAIL",
            FaultCode::HeadRollback => "HEAD_ROLLBACK",
            FaultCode::Fork => "FORK",
            FaultCode::FileHash => "FILE_HASH",
            FaultCode::FileMissing => "FILE_MISSING",
            FaultCode::FileSize => "FILE_SIZE",
            FaultCode::PathMismatch => "PATH_MISMATCH",
            FaultCode::OrphanFile => "ORPHAN_FILE",
            FaultCode::DupFile => "DUP_FILE",
            FaultCode::RowCount => "ROW_COUNT",
            FaultCode::RowRoot => "ROW_ROOT",
            FaultCode::Salt => "SALT",
            FaultCode::Unreadable => "UNREADABLE",
            FaultCode::TimeRegression => "TIME_REGRESSION",
            FaultCode::TimeFuture => "TIME_FUTURE",
            FaultCode::StaleHead => "STALE_HEAD",
            FaultCode::BadSig => "BAD_SIG",
            FaultCode::UnknownKey => "UNKNOWN_KEY",
            FaultCode::KeyMismatch => "KEY_MISMATCH",
            FaultCode::CoverageGap => "COVERAGE_GAP",
        }
    }
}

/// In JSON as in text.
impl Serialize for FaultCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
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
        // What a hostile ledger says may be any number.
        self.good = self.good.saturating_add(good);
        self.total = self.total.saturating_add(total);
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
    /// The first line that does not check, counted from 1.
    pub first_bad_line: Option<u64>,
    /// None when every line checks and every file is as it was committed.
    pub damage: Option<Damage>,
    /// The newest line that a head kept elsewhere vouches for, and with it all lines before.
    pub anchored: Option<Anchored>,
    /// None where nothing is signed.
    pub signed: Option<Signed>,
}

/// What the signatures beside a ledger say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signed {
    /// The last line that is signed.
    pub seq: LedgerSeq,
    /// The public key of its signature.
    pub key: String,
    /// No public key was given that this one is, or follows: it vouches for itself alone.
    pub is_self_asserted: bool,
}

/// How far the damage to a team reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The first commit that is not as it was made.
    pub first_seq: LedgerSeq,
    /// The last one: where a line does not check, nothing behind it is proved.
    pub last_seq: LedgerSeq,
    /// Event times of the first and the last row in files that are not as they were committed.
    pub first_event: Option<Instant>,
    pub last_event: Option<Instant>,
}

/// A line that a head kept elsewhere names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Anchored {
    pub seq: LedgerSeq,
    /// When the line was written.
    pub at: Instant,
}

impl TeamReport {
    /// Something is wrong with the commits from `first` to `last`.
    pub(super) fn damaged(&mut self, first: LedgerSeq, last: LedgerSeq) -> &mut Damage {
        let none = Damage { first_seq: first, last_seq: last, first_event: None, last_event: None };
        let damage = self.damage.get_or_insert(none);
        damage.first_seq = damage.first_seq.min(first);
        damage.last_seq = damage.last_seq.max(last);
        damage
    }
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
    /// The same, and for every team a head kept elsewhere is in it: up to there nothing was taken away or written anew.
    Anchored,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Broken => "BROKEN",
            Verdict::Unverifiable => "UNVERIFIABLE",
            Verdict::SelfConsistent => "SELF-CONSISTENT (unanchored)",
            Verdict::Anchored => "ANCHORED",
        })
    }
}

/// Everything that verifying found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VerifyReport {
    pub verdict: Verdict,
    pub archive_id: Option<String>,
    /// What was asked for.
    pub asked: Asked,
    /// When the first and the last line that check were written: what was found.
    pub found_from: Option<Instant>,
    pub found_to: Option<Instant>,
    pub heads_asked: usize,
    pub commits: Counts,
    pub files: Counts,
    pub rows: Counts,
    /// Files within the grace that a line removed, which `vacuum` removes later: no fault.
    pub retired: u64,
    /// Files within the grace that no line ever named, which a commit left that failed or is under way: no fault.
    pub unnamed: u64,
    pub teams: Vec<TeamReport>,
    pub faults: Vec<VerifyFault>,
    /// What is worth knowing and no damage: the archive itself says so, and is as it was written.
    pub notices: Vec<VerifyFault>,
}

/// Which part of an archive is to be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    #[default]
    WholeArchive,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn fault(&mut self, code: FaultCode, object: impl fmt::Display, detail: impl fmt::Display) {
        self.faults.push(VerifyFault { code, object: object.to_string(), detail: detail.to_string() });
    }

    pub(super) fn notice(&mut self, code: FaultCode, object: impl fmt::Display, detail: impl fmt::Display) {
        self.notices.push(VerifyFault { code, object: object.to_string(), detail: detail.to_string() });
    }

    /// The verdict in words: `ANCHORED up to seq 12 at 2026-11-20T12:00:00Z`.
    pub fn verdict_text(&self) -> String {
        let mut anchors = self.teams.iter().filter_map(|team| team.anchored);
        match (self.verdict, anchors.next(), anchors.next()) {
            (Verdict::Anchored, Some(one), None) => format!("ANCHORED up to seq {} at {}", one.seq, one.at),
            (Verdict::Anchored, _, _) => "ANCHORED, each team up to the seq that stands with it".to_owned(),
            (verdict, _, _) => verdict.to_string(),
        }
    }

    pub(super) fn conclude(&mut self) {
        for team in &self.teams {
            self.commits.add(team.commits.good, team.commits.total);
            self.files.add(team.files.good, team.files.total);
            self.rows.add(team.rows.good, team.rows.total);
            self.found_from = [self.found_from, team.first_at].into_iter().flatten().min();
            self.found_to = self.found_to.max(team.last_at);
        }
        let is_anchored = self.heads_asked > 0 && self.teams.iter().all(|team| team.anchored.is_some());
        let is_unknown = self.faults.iter().all(|f| f.code == FaultCode::Version);
        self.verdict = match self.faults.as_slice() {
            [] if is_anchored => Verdict::Anchored,
            [] => Verdict::SelfConsistent,
            _ if is_unknown => Verdict::Unverifiable,
            _ => Verdict::Broken,
        };
    }
}

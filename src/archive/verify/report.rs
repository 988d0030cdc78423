//! The report of a verification, for people and programs.

use std::fmt;

use serde::Serialize;
use strum::{Display, IntoStaticStr, VariantNames};

use crate::model::{Digest, Instant, LedgerSeq, TeamId};

use crate::archive::ledger::note::PublicKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, IntoStaticStr, VariantNames)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", const_into_str)]
pub enum FaultCode {
    /// `archive.json` is missing or invalid.
    Manifest,
    /// Another version wrote it, and this program cannot verify it.
    Version,
    /// A ledger line is invalid, or does not follow the line before.
    ChainBreak,
    /// Somebody overwrote or deleted a write-once ledger object. As a notice: the store did not list the older versions.
    Rewritten,
    /// The numbers of ledger lines are not consecutive.
    SeqGap,
    /// A ledger line of another archive or team.
    ArchiveId,
    /// A valid ledger line with impossible content.
    State,
    /// A line removes rows that a policy or a hold protects.
    PolicyViolation,
    /// Rows expired under a policy that differs from the configuration. A notice.
    PolicyChanged,
    /// The last ledger line is incomplete.
    TornTail,
    /// A head kept elsewhere, or the line of a snapshot, is not in the ledger.
    HeadRollback,
    /// The ledger and a head kept elsewhere belong to two histories.
    Fork,
    /// A file's bytes differ from the committed bytes.
    FileHash,
    FileMissing,
    FileSize,
    /// A file or line is in a wrong place.
    PathMismatch,
    /// No ledger names the file, or an order of erasure covers it.
    OrphanFile,
    /// Files that a line removed are older than the grace. A notice.
    RetiredFile,
    /// A second copy of a live file.
    DupFile,
    RowCount,
    /// The digest of a file's rows differs from the committed digest: the rows differ, not only the bytes.
    RowRoot,
    /// The salt of a month is missing or differs from the named one: its row digests cannot be checked.
    Salt,
    /// An erasure replaced the salt of a month: only hashes and signatures attest its earlier row digests. A notice.
    SaltReplaced,
    /// An order of erasure began and is not done. A notice.
    UnfinishedErasure,
    /// The path cannot be read as a file: a link, or a disk error.
    Unreadable,
    /// By the machine's clock, a line was written before the line that it follows. A notice.
    TimeRegression,
    /// A line was written in the future. A notice.
    TimeFuture,
    /// The last commit is long ago: nothing was read, or somebody cut off the ledger's end. A notice.
    StaleHead,
    /// A signature is wrong or missing.
    BadSig,
    /// A key signed that no verifier knows.
    UnknownKey,
    /// Another key than the given one signed the archive.
    KeyMismatch,
    /// The ledger records a range in which events were, or may have been, lost in the service. A notice.
    CoverageGap,
    /// An open table differs from the ledger or from the existing files.
    Table,
}

/// One fault: its kind, its place and its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyFault {
    pub code: FaultCode,
    /// A path, with a line number in a ledger.
    pub object: String,
    pub detail: String,
}

/// The number of good items, and the total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    pub good: u64,
    pub total: u64,
}

impl Counts {
    pub fn add(&mut self, good: u64, total: u64) {
        // A hostile ledger can contain any number.
        self.good = self.good.saturating_add(good);
        self.total = self.total.saturating_add(total);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.good, self.total)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TeamReport {
    /// `None` if no line of its ledger could be read.
    pub team_id: Option<TeamId>,
    pub ledger: String,
    pub commits: Counts,
    pub files: Counts,
    pub rows: Counts,
    /// The number, hash and time of the last valid line; keep the hash elsewhere.
    pub last_seq: LedgerSeq,
    pub head: Option<Digest>,
    pub first_at: Option<Instant>,
    pub last_at: Option<Instant>,
    /// The first invalid line, counted from 1.
    pub first_bad_line: Option<u64>,
    /// `None` if every line is valid and every file is unchanged.
    pub damage: Option<Damage>,
    /// The newest line that a head kept elsewhere confirms, and with it all lines before.
    pub anchored: Option<Anchored>,
    /// `None` if nothing is signed.
    pub signed: Option<Signed>,
}

/// The result for a ledger's signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signed {
    /// The last signed line.
    pub seq: LedgerSeq,
    /// The public key of its signature.
    pub key: String,
    /// No given key is this key or joined to it by handovers: the key vouches only for itself.
    pub is_self_asserted: bool,
    /// The keys that handovers join to a given key, each with the line after which it began.
    #[serde(skip)]
    pub chain: Vec<(LedgerSeq, PublicKey)>,
}

/// The extent of a team's damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The first damaged commit.
    pub first_seq: LedgerSeq,
    /// The last damaged commit: after an invalid line, nothing is proved.
    pub last_seq: LedgerSeq,
    /// Event times of the first and last row in damaged files.
    pub first_event: Option<Instant>,
    pub last_event: Option<Instant>,
}

/// A line that a head kept elsewhere names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Anchored {
    pub seq: LedgerSeq,
    /// The time of the line.
    pub at: Instant,
}

impl TeamReport {
    /// Records that the commit `seq` is damaged.
    pub(super) fn damaged(&mut self, seq: LedgerSeq) -> &mut Damage {
        let none = Damage { first_seq: seq, last_seq: seq, first_event: None, last_event: None };
        let damage = self.damage.get_or_insert(none);
        damage.first_seq = damage.first_seq.min(seq);
        damage.last_seq = damage.last_seq.max(seq);
        damage
    }
}

/// Verdicts from the weakest: a report never claims more than it checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display, Default)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    Broken,
    /// This program cannot decide.
    #[default]
    Unverifiable,
    /// All parts agree. Only a head kept elsewhere can show whether the end was cut off.
    #[strum(to_string = "SELF-CONSISTENT (unanchored)")]
    SelfConsistent,
    /// All parts agree, and every team holds a head kept elsewhere: up to that line, nobody removed or rewrote anything.
    Anchored,
}

/// The full result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VerifyReport {
    pub verdict: Verdict,
    pub archive_id: Option<String>,
    /// The range: `whole_archive`, or `one_team` in a pack of one team.
    pub asked: &'static str,
    /// The found range: the times of the first and last valid line.
    pub found_from: Option<Instant>,
    pub found_to: Option<Instant>,
    pub heads_asked: usize,
    pub commits: Counts,
    pub files: Counts,
    pub rows: Counts,
    /// Intact files that a line removed and `vacuum` will remove: no fault.
    pub retired: u64,
    /// Files within the grace that no line ever named, from failed or running commits: no fault.
    pub unnamed: u64,
    pub teams: Vec<TeamReport>,
    pub faults: Vec<VerifyFault>,
    /// Facts that are no damage: the archive records them itself.
    pub notices: Vec<VerifyFault>,
}

impl VerifyReport {
    /// Whether there is no fault.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds the faults of the open tables, which another room found.
    pub fn add_table_faults(&mut self, faults: impl IntoIterator<Item = VerifyFault>) {
        let before = self.faults.len();
        self.faults.extend(faults);
        if self.faults.len() > before {
            self.verdict = Verdict::Broken;
        }
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
            (Verdict::Anchored, _, _) => "ANCHORED, each team up to its own seq".to_owned(),
            (verdict, _, _) => verdict.to_string(),
        }
    }

    pub fn conclude(&mut self) {
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

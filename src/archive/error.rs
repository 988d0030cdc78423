//! Errors of an archive: the store failed, the archive refuses, or the draft is wrong.

use thiserror::Error;

use crate::model::{LedgerSeq, TeamId};
use crate::store::StoreError;

use crate::archive::ledger::state_error::StateError;

/// Why a month has no salt for its row digests.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the salt of {month} is lost: {path}: {reason}; restore the file from a copy of the archive")]
pub struct LostSalt {
    /// `2026-11`
    pub month: String,
    /// The path of the salt's file, or of the ledger that names none.
    pub path: String,
    pub reason: String,
}

#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The store failed; the message names the operation and the path.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another writer holds the team's lock. The caller must not write the team.
    #[error("team {team}: another writer holds the lock: stop `annals run`, or wait for the other command")]
    Locked { team: TeamId },
    #[error(
        "archive.json: format version {found}, but this program knows version {known}: use the Annals that made it"
    )]
    Version { found: u32, known: u32 },
    #[error("archive.json: missing; this is no archive, or somebody removed its manifest")]
    NotAnArchive,
    #[error("archive.json: missing, but {found} exists: refusing to create a new archive over an old one")]
    ManifestMissing { found: String },
    #[error("{path}: Annals cannot read this file: {reason}. Restore it from a back-up")]
    Manifest { path: &'static str, reason: String },
    #[error(
        "archive.json: the ledger of this archive lies elsewhere, but no place of a ledger is given: is [store] ledger missing?"
    )]
    LedgerElsewhere,
    #[error(
        "archive.json: the ledger of this archive lies inside it, but [store] ledger names another place: remove that key, or move the \
         archive with `annals copy`"
    )]
    LedgerInside,
    #[error(
        "ledger/archive.json: missing: [store] ledger does not name the place of this archive's ledger, or somebody removed that file"
    )]
    LedgerMissing,
    #[error("ledger/archive.json: [store] ledger names the place of the ledger of another archive, {found}")]
    OtherLedger { found: String },
    #[error(
        "{path}: no line is there, but a snapshot of line {line} exists: if a copy began here, run annals copy again, else restore the \
         ledger from a back-up"
    )]
    LedgerLost { path: String, line: LedgerSeq },
    #[error("the target holds archive {found}, but the source is archive {expected}: choose another target")]
    OtherArchive { found: String, expected: String },
    #[error(
        "team {team}: the target's ledger differs from the source's at or before line {seq}: choose another target"
    )]
    OtherHistory { team: TeamId, seq: LedgerSeq },
    #[error(
        "{path}: an interrupted copy left this file, which was older than the grace; Annals removed the file: run the command again"
    )]
    Leftover { path: String },
    /// A ledger line is invalid. Line numbers start at 1 in each file.
    #[error("{path} line {line}: {reason}")]
    Damaged { path: String, line: u64, reason: String },
    #[error("{path}: has {bytes} bytes with digest {found}, but the ledger says {expected}")]
    FileAltered { path: String, bytes: u64, found: String, expected: String },
    /// The commit would break a rule of the archive; the archive is unchanged.
    #[error("team {team}: {source}")]
    State { team: TeamId, source: StateError },
    #[error(transparent)]
    Salt(#[from] LostSalt),
    /// The draft is invalid; the archive is unchanged.
    #[error("team {team}: {reason}")]
    Draft { team: TeamId, reason: String },
    /// The file, read back, differs from the written data; the writer discards the file.
    #[error("{path}: wrote {expected}, but read back {found}")]
    ReadBack { path: String, found: String, expected: String },
    #[error("{path}: {detail}")]
    Table { path: String, detail: String },
    /// The commit took longer than the limit, and `vacuum` may soon remove its files; the archive is unchanged.
    #[error("team {team}: the commit took {minutes} minutes, so its files are too old: the next round repeats it")]
    Stalled { team: TeamId, minutes: u64 },
    /// The commit's outcome is unknown: opening the team again shows it.
    #[error("team {team}: the outcome of commit {seq} is unknown until the archive is opened again: {source}")]
    Reopen { team: TeamId, seq: LedgerSeq, source: StoreError },
    /// Another writer of the team appended first: nothing of this commit is in the ledger.
    #[error("team {team}: another writer committed line {seq} first: {source}")]
    Fenced { team: TeamId, seq: LedgerSeq, source: StoreError },
    /// An earlier commit failed in its second step; see [`ArchiveError::Reopen`] and [`ArchiveError::Fenced`].
    #[error("team {team}: an earlier commit failed during its append: open the archive again before the next write")]
    Poisoned { team: TeamId },
}

impl ArchiveError {
    /// Whether the writer that returned this error must be opened again before it can continue.
    pub fn needs_reopen(&self) -> bool {
        matches!(self, ArchiveError::Reopen { .. } | ArchiveError::Poisoned { .. }) || self.is_fenced()
    }

    /// Whether the ledger was looked for in a wrong place.
    pub fn is_wrong_ledger(&self) -> bool {
        use ArchiveError::{LedgerElsewhere, LedgerInside, LedgerMissing, OtherLedger};
        matches!(self, LedgerElsewhere | LedgerInside | LedgerMissing | OtherLedger { .. })
    }

    /// Whether another writer of the same team was faster.
    pub fn is_fenced(&self) -> bool {
        matches!(self, ArchiveError::Fenced { .. })
    }

    /// Whether the same call can succeed later, for example after a full disk has space again.
    pub fn is_transient(&self) -> bool {
        matches!(self, ArchiveError::Store(_) | ArchiveError::Stalled { .. }) || self.needs_reopen()
    }
}

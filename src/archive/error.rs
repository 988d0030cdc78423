//! What can go wrong with an archive: the world failed, the archive refuses, the draft is wrong.

use thiserror::Error;

use crate::model::{LedgerSeq, TeamId};

use super::rules::StateError;
use super::store::StoreError;
use super::text_lines::LINE_BYTES_MAX;

#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The store failed; the message carries verb and path.
    #[error(transparent)]
    Store(StoreError),
    /// Another writer holds the team. Whoever sees this refuses to go on.
    #[error("team {team}: another writer holds the lock")]
    Locked { team: TeamId },
    #[error(
        "archive.json: format version {found}, this program knows version {known}: read the service again into a new archive, or \
         use the program that made this one"
    )]
    Version { found: u32, known: u32 },
    #[error("archive.json: not there; this is not an archive, or its manifest was taken away")]
    NotAnArchive,
    #[error("archive.json: not there, but {found} is: refusing to start a new archive over an old one")]
    ManifestMissing { found: String },
    #[error("archive.json: {reason}")]
    Manifest { reason: String },
    #[error("holds archive {found}, and archive {expected} is to be copied there: give another place")]
    OtherArchive { found: String, expected: String },
    #[error(
        "team {team}: the ledger that is there up to line {seq} is no beginning of the one to be copied: give another place"
    )]
    OtherHistory { team: TeamId, seq: LedgerSeq },
    /// A ledger line does not check. Lines count from 1 within their file.
    #[error("{path} line {line}: {reason}")]
    Damaged { path: String, line: u64, reason: String },
    #[error("{path}: {bytes} bytes with digest {found}, the ledger says {expected}")]
    FileAltered { path: String, bytes: u64, found: String, expected: String },
    /// The commit would break a rule of the archive; nothing was changed.
    #[error("team {team}: {source}")]
    State { team: TeamId, source: StateError },
    /// No reader would hold the line; nothing was changed.
    #[error(
        "team {team}: the commit's ledger line is {bytes} bytes long, and {LINE_BYTES_MAX} is the most: commit less at once"
    )]
    LineTooLong { team: TeamId, bytes: usize },
    /// The draft cannot be written as it is; nothing was changed.
    #[error("team {team}: {reason}")]
    Draft { team: TeamId, reason: String },
    /// What was read back is not what was written; the file is thrown away.
    #[error("{path}: read back {found}, wrote {expected}")]
    ReadBack { path: String, found: String, expected: String },
    #[error("{path}: {detail}")]
    Table { path: String, detail: String },
    /// The commit was under way for longer than `vacuum` leaves its files alone; nothing was changed.
    #[error("team {team}: the commit took {minutes} minutes, and its files are too old for it: it is begun anew")]
    Stalled { team: TeamId, minutes: u64 },
    /// The commit may or may not stand: opening the team again finds out.
    #[error("team {team}: whether commit {seq} stands is found out by opening the archive again: {source}")]
    Reopen { team: TeamId, seq: LedgerSeq, source: StoreError },
    /// Another writer of the team went on where this commit meant to: nothing of it stands.
    #[error("team {team}: commit {seq} comes after another writer's: {source}")]
    Fenced { team: TeamId, seq: LedgerSeq, source: StoreError },
    /// An earlier commit failed half-way; see [`ArchiveError::Reopen`] and [`ArchiveError::Fenced`].
    #[error("team {team}: an earlier commit failed half-way; open the archive again before writing")]
    Poisoned { team: TeamId },
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> Self {
        ArchiveError::Store(error)
    }
}

impl ArchiveError {
    /// Whether the writer that returned this error must be opened again before it can go on.
    pub fn needs_reopen(&self) -> bool {
        matches!(self, ArchiveError::Reopen { .. } | ArchiveError::Poisoned { .. }) || self.is_fenced()
    }

    /// Whether another writer of the same team was faster.
    pub fn is_fenced(&self) -> bool {
        matches!(self, ArchiveError::Fenced { .. })
    }

    /// Whether the same call may succeed later: the disk was full, a file was busy.
    pub fn is_transient(&self) -> bool {
        matches!(self, ArchiveError::Store(_) | ArchiveError::Stalled { .. }) || self.needs_reopen()
    }
}

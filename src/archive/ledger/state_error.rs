//! The rules of every commit, as the errors of commits that break them.

use thiserror::Error;

use crate::model::path::SealUnit;
use crate::model::{Dataset, Digest, Instant, InventoryPart, LedgerSeq, Range, Stream, TeamId};

use super::line::GENESIS;
use crate::archive::WindowState;

/// The rule that a commit would break.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StateError {
    #[error("the line belongs to archive {found}, but this is archive {expected}")]
    ArchiveId { found: String, expected: String },
    #[error("the line belongs to team {found}, but this is team {expected}")]
    TeamId { found: TeamId, expected: TeamId },
    #[error("the line has number {found}, expected {expected}")]
    Seq { found: LedgerSeq, expected: LedgerSeq },
    #[error("line {seq} names {found} as the line before it, but {} {expected}", before(*expected))]
    Chain { seq: LedgerSeq, found: Digest, expected: Digest },
    #[error("line {seq} has the kind {kind:?}, which this program does not know")]
    Kind { seq: LedgerSeq, kind: String },
    #[error("window {stream}{new} overlaps {held}")]
    Overlap { stream: Stream, new: Range, held: Range },
    #[error("window {stream}{new} is empty")]
    EmptyWindow { stream: Stream, new: Range },
    #[error("window {stream}{new} has another end than before: {held}")]
    Resized { stream: Stream, new: Range, held: Range },
    #[error("window {stream}{window}: its state goes back from {} to {}", from.into_str(), to.into_str())]
    Back { stream: Stream, window: Range, from: WindowState, to: WindowState },
    #[error("window {stream}{window}: its number of events falls from {from} to {to}")]
    FewerEvents { stream: Stream, window: Range, from: u64, to: u64 },
    #[error("window {stream}{window}: its number of events without text goes from {from} to {to}, of {events} events")]
    WithoutText { stream: Stream, window: Range, from: u64, to: u64, events: u64 },
    #[error("window {stream}{window} is recorded twice in one commit")]
    Twice { stream: Stream, window: Range },
    #[error("{path}: not the path of a {dataset} file of this team")]
    Path { path: String, dataset: Dataset },
    #[error("{path}: added, but live already")]
    NotNew { path: String },
    #[error("{path}: removed, but not live")]
    NotLive { path: String },
    #[error("{path}: its first time {first} is later than its last time {last}")]
    Times { path: String, first: Instant, last: Instant },
    #[error("the line names the salt of {month} a second time, or {month} does not begin a month")]
    Salt { month: Instant },
    #[error("{dataset}: the commit removes {removed} rows, but adds only {added}")]
    RowsLost { dataset: Dataset, removed: u64, added: u64 },
    #[error("{dataset}: the commit rewrites {rows} rows with digest {removed}, but the new digest is {added}")]
    RowsChanged { dataset: Dataset, rows: u64, removed: Digest, added: Digest },
    #[error("{rows} events leave quarantine, but the removed files held {left}, and {gained} become rows")]
    Released { rows: u64, gained: u64, left: u64 },
    #[error("the commit adds {rows} rows of connections, but no sessions record")]
    SessionsBehind { rows: u64 },
    #[error("erasure {order}: {reason}")]
    Erasure { order: String, reason: String },
    #[error("{stream}{range} is not a {unit}")]
    NotAUnit { stream: Stream, range: Range, unit: SealUnit },
    #[error("{stream}{range} is sealed already")]
    Sealed { stream: Stream, range: Range },
    #[error("{stream}{range} cannot be sealed: window {window} is {}", state.into_str())]
    Open { stream: Stream, range: Range, window: Range, state: WindowState },
    #[error("{path}: is not a sealed file, but {stream}{range} is sealed")]
    LeftOutside { stream: Stream, range: Range, path: String },
    #[error("{0}")]
    Hold(String),
    /// An expiry contradicts the earlier lines, or the rest of its line.
    #[error("{0}")]
    Expiry(String),
    /// The line removes or changes rows that a policy or a hold protects.
    #[error("{0}")]
    Protected(String),
    #[error("the read of the {part} at {to} is not later than the one at {from}")]
    ScanBackwards { part: InventoryPart, from: Instant, to: Instant },
}

/// The first line of a ledger follows no line.
fn before(expected: Digest) -> &'static str {
    if expected == GENESIS { "a first line must name" } else { "that line is" }
}

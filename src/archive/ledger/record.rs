//! The content of a ledger line: added and removed files, moved checkpoints, findings. The ledger is the only truth about an
//! archive.
//!
//! A record holds ids of teams and computers, digests, times and counts, but no secret and no URL. It names people only in a
//! review (the reviewer) and in a hold (its reason and its requester).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::model::{Dataset, DeviceId, Digest, EventIdentity, FileRole, Instant, InventoryPart, Range, Stream};

use super::rows_sum::RowsSum;
use crate::archive::{ErasedRecord, ExpiredRecord, Finding, HoldRecord, ReviewRecord};

/// How completely a window was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum WindowState {
    /// Read before its lag had passed, or only in part.
    Provisional,
    /// Read completely after its lag, confirmed by two equal walks, and committed.
    Settled,
    /// Re-scanned without a change, and final.
    Sealed,
}

/// The position of a walk over an open window: the next request begins at `offset - anchors.len()`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkPoint {
    /// Number of events before this position, including the padding.
    pub offset: u64,
    /// The first 16 bytes of the digests of the last events before `offset`, oldest first, encrypted with the team's key (see
    /// [`EventKey::encrypt`](crate::archive::EventKey::encrypt)) and in hexadecimal.
    pub anchors: Vec<String>,
}

/// One window of one stream after a commit. A later record with the same start replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowRecord {
    pub stream: Stream,
    #[serde(flatten)]
    pub range: Range,
    pub state: WindowState,
    /// Number of whole walks over the window.
    pub reads: u32,
    pub requests: u64,
    /// Number of archived events that the window owns, without quarantined events.
    pub events: u64,
    /// Number of these events whose text the archive did not keep (`[privacy] raw = "columns-only"`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_text: u64,
    /// Number of events first seen after the window was settled.
    pub late: u64,
    /// The service's time at the end of the confirmed read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<Instant>,
    /// The service's time at the end of the last read that helped to settle the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Instant>,
    /// Number of re-scans done; each age of `rescan` in the configuration counts as one.
    pub rescans: u32,
    /// Already confirmed parts of a reading that settles or re-scans the window, disjoint and sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<Range>,
    /// The service's time from which this reading counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts_from: Option<Instant>,
    /// Seconds that changed at each read and remain open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unstable: Vec<Range>,
    /// The provisional walk of an open window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<WalkPoint>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl WindowRecord {
    /// A window that was never read.
    pub const fn new(stream: Stream, range: Range) -> Self {
        Self {
            stream,
            range,
            state: WindowState::Provisional,
            reads: 0,
            requests: 0,
            events: 0,
            without_text: 0,
            late: 0,
            settled_at: None,
            confirmed_at: None,
            rescans: 0,
            confirmed: Vec::new(),
            counts_from: None,
            unstable: Vec::new(),
            walk: None,
        }
    }

    /// The parts that were proved complete.
    pub fn proved(&self) -> &[Range] {
        if self.state == WindowState::Provisional { &self.confirmed } else { std::slice::from_ref(&self.range) }
    }
}

/// At the service's time `at`, Annals had read everything before `read_to` at least once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPoint {
    pub at: Instant,
    pub read_to: Instant,
    /// For connections: the time of the last list of computers. A removal that only a list shows can be later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Instant>,
}

impl ReadPoint {
    /// A read up to `read_to` that ended at `at`. The service tells its time in whole seconds, so its clock can seem to go back.
    /// The read still ends no earlier than `read_to`.
    pub fn ended(at: Instant, read_to: Instant) -> Self {
        Self { at: at.max(read_to), read_to, listed_at: None }
    }
}

/// The state of a stream apart from its windows. A later record of the same stream replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamRecord {
    /// The start of the first window. Older events were out of reach of the backfill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<Instant>,
    /// The newest read points, oldest first; at most [`READ_POINTS_MAX`].
    #[serde(default)]
    pub read_points: Vec<ReadPoint>,
    /// The lag learned from late events, in seconds; 0 if the configured lag has been enough.
    pub learned_lag_seconds: u64,
    /// The identities of the last billing snapshot, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshot: Vec<SnapshotEntry>,
    /// The plan's span of connection history in seconds, as the team last showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_span_seconds: Option<u64>,
    /// All event types seen so far: a new type makes one finding.
    pub event_types: BTreeSet<String>,
}

pub const READ_POINTS_MAX: usize = 32;
/// When more than half of the points are used, points closer together than this are dropped, except the newest. So frequent
/// points do not push out old ones.
const READ_POINTS_APART_MIN: Duration = Duration::from_secs(600);

impl StreamRecord {
    /// The plan's span of connection history, as the team last showed it.
    pub fn plan_span(&self) -> Option<Duration> {
        self.plan_span_seconds.map(Duration::from_secs)
    }

    pub fn push_point(&mut self, point: ReadPoint) {
        let points = &mut self.read_points;
        if let [.., before, last] = points.as_slice()
            && points.len() > READ_POINTS_MAX / 2
            && last.at.since(before.at) < READ_POINTS_APART_MIN
        {
            points.pop();
        }
        points.push(point);
        let surplus = points.len().saturating_sub(READ_POINTS_MAX);
        points.drain(..surplus);
    }
}

/// One entry of a billing snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Keyed: see [`EventKey::digest`](crate::archive::EventKey::digest).
    pub digest: Digest,
}

impl SnapshotEntry {
    /// `digest` is the keyed digest of the event.
    pub fn new(identity: &EventIdentity, digest: Digest) -> Self {
        Self { id: identity.id.as_ref().map(|id| id.as_str().to_owned()), digest }
    }
}

/// The salt of a month, from the line that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaltRecord {
    /// The first instant of the month.
    pub month: Instant,
    /// The digest of the salt's file.
    pub sha256: Digest,
}

/// One data file, from the commit that added it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The path relative to the archive, with `/`.
    pub path: String,
    pub dataset: Dataset,
    pub role: FileRole,
    pub rows: u64,
    pub bytes: u64,
    pub sha256: Digest,
    /// The wrapping sum of the row digests: equal for the same rows in any order and encoding.
    pub rows_digest: Digest,
    /// Event times of the first and the last row; `None` if no row has a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Instant>,
}

impl FileEntry {
    pub(in crate::archive) fn sum(&self) -> RowsSum {
        RowsSum::new(self.rows, self.rows_digest)
    }
}

impl RowsSum {
    pub(in crate::archive) fn of_files<'a>(files: impl IntoIterator<Item = &'a FileEntry>) -> Self {
        files.into_iter().map(FileEntry::sum).fold(Self::default(), Self::plus)
    }
}

/// The computers that appeared in the team's list or vanished from it, and those that an event named first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceDelta {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub added: BTreeSet<DeviceId>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<DeviceId>,
    /// Computers whose addition activity showed before any list showed them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub named: BTreeSet<DeviceId>,
    /// Computers that read connections name and that no list has shown, with the last read point before these connections.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unlisted: BTreeMap<DeviceId, Option<Instant>>,
}

impl DeviceDelta {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.named.is_empty() && self.unlisted.is_empty()
    }
}

/// How a line changes the sessions. Its added files hold the removed files' rows, minus the replaced, plus the added rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsRecord {
    #[serde(flatten)]
    pub mark: SessionsMark,
    pub replaced: u64,
    /// The sum of the digests of the replaced rows.
    pub replaced_digest: Digest,
    pub added: u64,
    pub added_digest: Digest,
}

impl SessionsRecord {
    pub(in crate::archive) fn new(mark: SessionsMark, replaced: RowsSum, added: RowsSum) -> Self {
        let (replaced_digest, added_digest) = (replaced.digest, added.digest);
        Self { mark, replaced: replaced.rows, replaced_digest, added: added.rows, added_digest }
    }

    /// The replaced rows, and the added rows.
    pub(in crate::archive) fn sums(&self) -> (RowsSum, RowsSum) {
        (RowsSum::new(self.replaced, self.replaced_digest), RowsSum::new(self.added, self.added_digest))
    }
}

/// The state of the sessions: their rules, and the events that they include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsMark {
    /// The version of the session rules.
    pub rules: u32,
    /// The sessions lack the events from this time on. `None`: the sessions include all archived events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Instant>,
    /// The end of the missing events, if the sessions lack some. `None`: all sessions are being recomputed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
}

/// A read of one part of the team's inventory. The times of one part increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryRead {
    pub part: InventoryPart,
    /// The service's time at the read, to the microsecond.
    pub read_at: Instant,
    /// False if the token may not see this part: its changes since the last visible read are unknown.
    pub visible: bool,
    /// Number of things that the read showed.
    pub entities: u64,
}

/// The body of a ledger line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Body {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adds: Vec<FileEntry>,
    /// Files whose rows stand, unchanged, in added files. Exceptions: sessions, released, expired and erased rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<(Stream, StreamRecord)>,
    /// New read points of streams, each later than those of its record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_points: Vec<(Stream, ReadPoint)>,
    #[serde(default, skip_serializing_if = "DeviceDelta::is_empty")]
    pub devices: DeviceDelta,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Calendar months whose rows are in sealed files alone from this line on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed_months: Vec<(Stream, Range)>,
    /// Days that are sealed in the same way, of months that are not yet sealed before this line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed_days: Vec<(Stream, Range)>,
    /// `None` if the session rows do not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsRecord>,
    /// Quarantined events that become rows in this line, as rows of `quarantine`. Its added quarantine files hold the removed files'
    /// rows, minus these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<RowsSum>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<InventoryRead>,
    /// New reviews of report packs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<ReviewRecord>,
    /// Expired months: the line removes their files without a replacement. Their sessions are replaced rows of `sessions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expired: Vec<ExpiredRecord>,
    /// Added and released legal holds, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<HoldRecord>,
    /// The erasure order that this line carries out. Such a line does nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<ErasedRecord>,
    /// The salts that the row digests of this line need for the first time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub salts: Vec<SaltRecord>,
    /// The digest of the draft of this line. A writer recognises by it that a repeated commit is already in the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Digest>,
}

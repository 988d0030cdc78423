//! What a ledger line says: files added and removed, checkpoints moved, findings. The only truth about an archive.
//!
//! No personal data, no secret and no URL stands in a record: ids of teams and computers, digests, times and counts.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{DeviceId, Digest, EventIdentity, Instant, InventoryPart, Range, Stream};

use super::{Dataset, ReviewRecord};

/// How far a window is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowState {
    /// Read before its lag had passed, or only in part.
    Provisional,
    /// Read whole after its lag, confirmed by two equal walks, and committed.
    Settled,
    /// Re-scanned and unchanged: final.
    Sealed,
}

impl WindowState {
    pub const fn as_str(self) -> &'static str {
        match self {
            WindowState::Provisional => "provisional",
            WindowState::Settled => "settled",
            WindowState::Sealed => "sealed",
        }
    }
}

/// Where a walk over an open window stands: the next page is asked for from `offset - anchors.len()`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkPoint {
    /// Events of the list before this point, the padding included.
    pub offset: u64,
    /// The first 16 bytes of the digests of the last events before `offset`, oldest first, in hexadecimal.
    pub anchors: Vec<String>,
}

/// One window of one stream, as it stands after a commit. A later record of the same start replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowRecord {
    pub stream: Stream,
    #[serde(flatten)]
    pub range: Range,
    pub state: WindowState,
    /// Whole walks over the window.
    pub reads: u32,
    pub requests: u64,
    /// Archived events that the window owns; quarantined ones are not among them.
    pub events: u64,
    /// Events first seen on a re-scan.
    #[serde(default)]
    pub late: u64,
    /// When the service's clock stood at the end of the confirmed reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<Instant>,
    /// The service's clock at the end of the last reading that helped to settle the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Instant>,
    /// Re-scans done, counted in tiers of the configuration.
    #[serde(default)]
    pub rescans: u32,
    /// Parts of an unsettled window that are confirmed already; disjoint, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<Range>,
    /// Seconds that never held still, still open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unstable: Vec<Range>,
    /// The provisional walk of an open window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<WalkPoint>,
}

/// At the service's time `at`, everything before `read_to` had been read at least once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPoint {
    pub at: Instant,
    pub read_to: Instant,
    /// Of connections: when the computers were last listed. A removal that only a list shows may have come after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Instant>,
}

impl ReadPoint {
    /// A reading up to `read_to` that ended at `at`. The service tells its time in whole seconds, so its clock may seem to go
    /// back. A reading still ends no earlier than the moment up to which it reads.
    pub fn ended(at: Instant, read_to: Instant) -> Self {
        Self { at: at.max(read_to), read_to, listed_at: None }
    }
}

/// What is remembered of a stream beside its windows. A later record of the same stream replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamRecord {
    /// The start of the first window: what is older was out of reach at the first reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<Instant>,
    /// The newest read points, oldest first; at most [`READ_POINTS_MAX`].
    #[serde(default)]
    pub read_points: Vec<ReadPoint>,
    /// The lag learned from late events, in seconds; 0 when the configured one has sufficed.
    #[serde(default)]
    pub learned_lag_seconds: u64,
    /// The last billing snapshot, newest first, as identities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshot: Vec<SnapshotEntry>,
    /// The span of connection history that the plan shows, in seconds, as the team last told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_span_seconds: Option<u64>,
    /// Event types met so far: a new one is a finding once.
    #[serde(default)]
    pub event_types: BTreeSet<String>,
}

pub const READ_POINTS_MAX: usize = 32;
/// Where there are more than half of those, points closer together than this are thinned out, but for the newest: frequent
/// ones must not push out the old.
const READ_POINTS_APART_MIN: Duration = Duration::from_secs(600);

impl StreamRecord {
    /// Remembers one more read point.
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
    pub digest: Digest,
}

impl From<&EventIdentity> for SnapshotEntry {
    fn from(identity: &EventIdentity) -> Self {
        Self { id: identity.id.as_ref().map(|id| id.as_str().to_owned()), digest: identity.digest }
    }
}

/// What a re-scan or a check noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// What is older was out of reach at the first reading.
    ArchiveBegins,
    /// Events were, or may have been, lost upstream.
    Gap,
    /// A gap turned out to have lost nothing: the gap of the same stream, subject and times no longer stands.
    GapClosed,
    /// A computer was removed before the archive's first reading: of this span its connections cannot have been read.
    RemovedBefore,
    Late,
    ChangedUpstream,
    NoLongerServed,
    NewEventType,
    UnstableWindow,
    AmbiguousOverlap,
    PagingAnomaly,
    Redacted,
    Quarantined,
    /// Quarantined events that were read again and became rows.
    Released,
    ClockRegression,
    Silence,
    DeprecatedHistory,
    /// Connection events without a `connectionID`: they belong to no session.
    NoConnectionId,
    /// The service shows a field of people or computers that is not documented; it is not kept.
    UnknownField,
}

impl FindingKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            FindingKind::ArchiveBegins => "archive_begins",
            FindingKind::Gap => "gap",
            FindingKind::GapClosed => "gap_closed",
            FindingKind::RemovedBefore => "removed_before",
            FindingKind::Late => "late",
            FindingKind::ChangedUpstream => "changed_upstream",
            FindingKind::NoLongerServed => "no_longer_served",
            FindingKind::NewEventType => "new_event_type",
            FindingKind::UnstableWindow => "unstable_window",
            FindingKind::AmbiguousOverlap => "ambiguous_overlap",
            FindingKind::PagingAnomaly => "paging_anomaly",
            FindingKind::Redacted => "redacted",
            FindingKind::Quarantined => "quarantined",
            FindingKind::Released => "released",
            FindingKind::ClockRegression => "clock_regression",
            FindingKind::Silence => "silence",
            FindingKind::DeprecatedHistory => "deprecated_history",
            FindingKind::NoConnectionId => "no_connection_id",
            FindingKind::UnknownField => "unknown_field",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    pub kind: FindingKind,
    /// A window, a computer's id, an event's id or type: what it is about.
    pub subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Instant>,
    pub reason: String,
    pub count: u64,
    pub found_at: Instant,
}

impl Finding {
    /// Whether `self`, a [`FindingKind::GapClosed`], takes back `gap`.
    pub fn closes(&self, gap: &Finding) -> bool {
        self.kind == FindingKind::GapClosed
            && gap.kind == FindingKind::Gap
            && (self.stream, &self.subject, self.from, self.to) == (gap.stream, &gap.subject, gap.from, gap.to)
    }
}

/// The salt of a month, from the line that names it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaltRecord {
    /// The first instant of the month.
    pub month: Instant,
    /// Of the salt's file.
    pub sha256: Digest,
}

/// What a data file is to the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileRole {
    /// Polled rows of a window that is not settled, or rows that a settled window gained later.
    Part,
    /// Rows of a settled window, or of several that share a file.
    Window,
    /// All rows of a sealed day.
    Day,
    /// All rows of a sealed month, but for those of days that were sealed before it. Of sessions, also those of a year.
    Month,
    /// Rows that a sealed year, month or day gained later.
    Amendment,
    /// Sessions to which more events are waited for: in one file, whatever their time, so that replacing them is cheap.
    Open,
}

/// One data file, as the commit that added it knew it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Relative to the archive, with `/`.
    pub path: String,
    pub dataset: Dataset,
    pub role: FileRole,
    pub rows: u64,
    pub bytes: u64,
    pub sha256: Digest,
    /// The wrapping sum of the row digests: equal for the same rows in any order and any encoding.
    pub rows_digest: Digest,
    /// Event times of the first and the last row; none where no row has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Instant>,
}

/// The computers that appeared in or vanished from the team's list, and those that an event named first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceDelta {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub added: BTreeSet<DeviceId>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<DeviceId>,
    /// Named by an event before any list showed them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub named: BTreeSet<DeviceId>,
}

impl DeviceDelta {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.named.is_empty()
    }
}

/// How a line changes the sessions. What it removes of them, less what it replaces, with what it adds, stands in its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsRecord {
    #[serde(flatten)]
    pub mark: SessionsMark,
    pub replaced: u64,
    /// The sum of the row digests of what is replaced.
    pub replaced_digest: Digest,
    pub added: u64,
    pub added_digest: Digest,
}

/// Quarantined events that the rows of a line are made of. What it removes of `quarantine`, less these, stands in its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasedRecord {
    pub rows: u64,
    /// The sum of their digests as rows of `quarantine`.
    pub rows_digest: Digest,
}

/// What the sessions are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsMark {
    /// The version of the rules.
    pub rules: u32,
    /// They are behind the events: those from this moment on are still to be made sessions of. None: they say what all
    /// archived events say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Instant>,
    /// Where they are behind, the moment from which on they are not. None: they are being made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
}

/// A look at one part of the team's inventory. Times of one part never run backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventoryRead {
    pub part: InventoryPart,
    /// The service's clock at the look, to the microsecond.
    pub read_at: Instant,
    /// False: the token may not see it, and nothing is known of it since the look before.
    pub visible: bool,
    /// How many things it showed.
    pub entities: u64,
}

/// The body of a ledger line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Body {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adds: Vec<FileEntry>,
    /// Paths of files whose rows stand, unchanged, in files that this line adds; of sessions, those not replaced, and of
    /// quarantine, those not released.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<(Stream, StreamRecord)>,
    /// Read points that streams gained, each behind those of its record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_points: Vec<(Stream, ReadPoint)>,
    #[serde(default, skip_serializing_if = "DeviceDelta::is_empty")]
    pub devices: DeviceDelta,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Calendar months whose rows stand in sealed files alone from this line on, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed_months: Vec<(Stream, Range)>,
    /// Days, of months that are not sealed before this line, of which the same holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed_days: Vec<(Stream, Range)>,
    /// None: the sessions' rows stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<ReleasedRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<InventoryRead>,
    /// Packs of reports that somebody looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<ReviewRecord>,
    /// The salts of months of whose rows this line says digests first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub salts: Vec<SaltRecord>,
    /// The digest of the draft that became this line: the same draft committed again is this line, not another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<Digest>,
}

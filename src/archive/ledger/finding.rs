//! What a re-scan or a check found, as a line records it.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::model::{Instant, Range, Stream};

/// The kind of a finding of a re-scan or a check.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum FindingKind {
    /// Older events were out of reach of the backfill.
    ArchiveBegins,
    /// Events were, or may have been, lost in the service.
    Gap,
    /// A gap lost nothing: this withdraws the gap of the same stream, subject and times.
    GapClosed,
    /// A computer was removed before Annals first read this time, so its connections are missing.
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
    /// Events that the service still shows after their month of quarantine has expired. Annals does not keep them again.
    QuarantineExpired,
    /// Quarantined events that a later version read and added as rows.
    Released,
    ClockRegression,
    Silence,
    DeprecatedHistory,
    /// Connection events without a `connectionID`: they belong to no session.
    NoConnectionId,
    /// The service shows an undocumented field of people or computers. Annals does not keep it.
    UnknownField,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    pub kind: FindingKind,
    /// The window, computer id, event id or event type that the finding is about.
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
    /// A finding of one thing, without times.
    pub fn new(stream: Option<Stream>, kind: FindingKind, subject: &str, reason: &str, found_at: Instant) -> Self {
        let (subject, reason) = (subject.to_owned(), reason.to_owned());
        Self { stream, kind, subject, from: None, to: None, reason, count: 1, found_at }
    }

    /// The finding with times.
    #[must_use]
    pub fn over(self, range: Range) -> Self {
        Self { from: Some(range.start), to: Some(range.end), ..self }
    }

    /// The times, if the finding has both.
    pub fn range(&self) -> Option<Range> {
        self.from.zip(self.to).map(|(start, end)| Range { start, end })
    }

    /// Whether `self`, a [`FindingKind::GapClosed`], withdraws `gap`.
    pub fn closes(&self, gap: &Finding) -> bool {
        self.kind == FindingKind::GapClosed
            && gap.kind == FindingKind::Gap
            && (self.stream, &self.subject, self.from, self.to) == (gap.stream, &gap.subject, gap.from, gap.to)
    }
}

//! Findings: how they are made, and what closes a gap.

use crate::model::{Instant, Stream};

use super::{Finding, FindingKind};

impl Finding {
    /// A finding of one thing, without times.
    pub fn new(stream: Option<Stream>, kind: FindingKind, subject: &str, reason: &str, found_at: Instant) -> Self {
        let (subject, reason) = (subject.to_owned(), reason.to_owned());
        Self { stream, kind, subject, from: None, to: None, reason, count: 1, found_at }
    }

    /// Whether `self`, a [`FindingKind::GapClosed`], withdraws `gap`.
    pub fn closes(&self, gap: &Finding) -> bool {
        self.kind == FindingKind::GapClosed
            && gap.kind == FindingKind::Gap
            && (self.stream, &self.subject, self.from, self.to) == (gap.stream, &gap.subject, gap.from, gap.to)
    }
}

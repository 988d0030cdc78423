//! One stream's round: the state that its readings share.

use std::sync::Arc;
use std::time::Duration;

use crate::archive::{Finding, FindingKind};
use crate::collect::{Anomalies, CountedEvent, Lists, SplitBudget};
use crate::model::{Instant, Range, Stream};
use crate::pipeline::commit::Batch;
use crate::pipeline::plan::StreamWindows;
use crate::pipeline::team::TeamContext;

/// Seconds of padding of a first reading.
pub const PAD_SECONDS: i64 = 1;

/// The purpose of reading spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Settle,
    Rescan,
}

/// The start of a team's round.
#[derive(Debug, Clone, Copy)]
pub struct RoundStart {
    /// The service's clock.
    pub now: Instant,
    /// The start of a backfill.
    pub first: Instant,
    /// The plan's span: shown by the service, configured, or shown to an earlier round.
    pub plan_span: Option<Duration>,
}

/// One stream's round.
pub struct Round<'a> {
    pub ctx: &'a TeamContext,
    pub stream: Stream,
    /// The service's clock at the round's start.
    pub now: Instant,
    /// See [`RoundStart`].
    pub plan_span: Option<Duration>,
    pub lists: Lists,
    /// A window is settled this long after its end.
    pub lag: Duration,
    /// The stream as of the round's start, with its new windows.
    pub windows: StreamWindows,
    /// The round's budget for unstable ranges.
    pub budget: Arc<SplitBudget>,
}

impl Round<'_> {
    /// Adds events to the batch by their windows, in the order served.
    pub fn add_events(&self, batch: &mut Batch, events: Vec<CountedEvent>) {
        let mut window: Option<Range> = None;
        for event in events {
            // Most neighbouring events belong to the same window.
            window = event
                .event
                .at()
                .map(|at| window.filter(|last| last.owns(at)).unwrap_or_else(|| self.windows.of_event(at)));
            batch.add_event(self.stream, window, event);
        }
    }

    /// Notes contradictions in the service's paging: a finding the first time, and a log line each time.
    pub fn note_anomalies(&self, batch: &mut Batch, range: Range, anomalies: Anomalies) {
        for (subject, count) in anomalies.named().filter(|(_, count)| *count > 0) {
            tracing::debug!(stream = %self.stream, %range, subject, count, "the service's paging contradicts itself");
            let why = "the service's paging contradicts its document; Annals does not rely on it";
            let mut finding = self.finding(FindingKind::PagingAnomaly, subject, range, why);
            finding.count = count;
            batch.deferred_findings.push(finding);
        }
    }

    pub fn finding(&self, kind: FindingKind, subject: &str, range: Range, reason: &str) -> Finding {
        Finding::new(Some(self.stream), kind, subject, reason, self.now).over(range)
    }
}

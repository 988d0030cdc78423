//! One stream's round: what its readings permit, and how what they bring is sorted.

use std::sync::Arc;
use std::time::Duration;

use crate::archive::{Finding, FindingKind};
use crate::collect::{Anomalies, Counted, Lists, SplitBudget};
use crate::model::{Instant, Range, Stream};
use crate::pipeline::commit::batch::Batch;
use crate::pipeline::commit::piece::Piece;
use crate::pipeline::plan::stream_plan::Windows;
use crate::pipeline::plan::window_index::WindowIndex;
use crate::pipeline::team::context::TeamContext;
use crate::pipeline::workers::Work;

/// Fewer events of a window are joined row by row: columns that turn out to be worth nothing cost something, too.
const COLUMNS_AHEAD_MIN: usize = 4;
/// Seconds of padding of a first reading.
pub const PAD_SECONDS: i64 = 1;

/// Events of one window; without a window, events that none owns.
pub type OfWindow = (Option<Range>, Piece);

/// Why spans are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Settle,
    Rescan,
}

/// One stream's round.
pub struct Round<'a> {
    pub ctx: &'a TeamContext,
    pub stream: Stream,
    /// The service's clock at the round's start.
    pub now: Instant,
    pub lists: Lists<'a>,
    /// After its end a window waits so long before it is settled.
    pub lag: Duration,
    pub index: WindowIndex,
    /// The stream's windows as of the round's start.
    pub windows: Windows,
    /// What the round may spend on ranges that do not hold still.
    pub budget: Arc<SplitBudget>,
}

impl Round<'_> {
    /// The events of a range by their windows, as columns where they are many and no window holds any: a commit then has less
    /// to do while others wait for it.
    pub fn pieces(&self, range: Range, events: Vec<Counted>) -> Work<Vec<OfWindow>> {
        let holds_none = |window: Range| self.windows.get(&window.start).is_none_or(|held| held.events == 0);
        let mut pieces = self.of_windows(events);
        if pieces.iter().all(|(_, piece)| piece.events().len() < COLUMNS_AHEAD_MIN)
            || !self.index.overlapping(range).into_iter().all(holds_none)
        {
            return Work::Done(pieces);
        }
        let (salts, stream, seen_at) = (self.ctx.salts.clone(), self.stream, self.ctx.service().now());
        let make = move || {
            let many = pieces.iter_mut().filter(|(_, piece)| piece.events().len() >= COLUMNS_AHEAD_MIN);
            many.for_each(|(_, piece)| piece.make_columns(&salts, stream, seen_at));
            pieces
        };
        self.ctx.workers.begin(make)
    }

    /// Events by their windows, each in the order served.
    pub fn of_windows(&self, events: Vec<Counted>) -> Vec<OfWindow> {
        let is_in = |event: &Counted, window: Option<Range>| match event.event.at() {
            Some(at) => window.is_some_and(|window| window.owns(at)),
            None => window.is_none(),
        };
        let window_of = |event: &Counted| event.event.at().map(|at| self.index.of(at));
        // Spans end with their window: most often it is one.
        let first = events.first().and_then(window_of);
        if events.iter().all(|event| is_in(event, first)) {
            return vec![(first, events.into())];
        }
        let mut windows: Vec<(Option<Range>, Vec<Counted>)> = Vec::new();
        for event in events {
            match windows.iter_mut().rev().find(|(window, _)| is_in(&event, *window)) {
                Some((_, some)) => some.push(event),
                None => windows.push((window_of(&event), vec![event])),
            }
        }
        windows.into_iter().map(|(window, events)| (window, events.into())).collect()
    }

    pub fn sort_in(&self, batch: &mut Batch, pieces: Vec<OfWindow>) {
        pieces.into_iter().for_each(|(window, piece)| batch.add_events(self.stream, window, piece));
    }

    /// A kind of contradiction is a finding the first time; how often it happens is the log's.
    pub fn note_anomalies(&self, batch: &mut Batch, range: Range, met: Anomalies) {
        for (subject, count) in met.named().filter(|(_, count)| *count > 0) {
            tracing::debug!(stream = %self.stream, %range, subject, count, "the service's paging contradicts itself");
            let mut finding =
                self.finding(FindingKind::PagingAnomaly, subject, Some(range), "not as documented; not relied on");
            finding.count = count;
            batch.note_finding(finding);
        }
    }

    pub fn finding(&self, kind: FindingKind, subject: &str, range: Option<Range>, reason: &str) -> Finding {
        Finding {
            stream: Some(self.stream),
            kind,
            subject: subject.to_owned(),
            from: range.map(|range| range.start),
            to: range.map(|range| range.end),
            reason: reason.to_owned(),
            count: 1,
            found_at: self.now,
        }
    }
}

//! A segment of a span becomes a batch: events of windows, changes of the windows' records, and findings.

use crate::archive::{ArchiveError, Finding, FindingKind, TeamWriter, WindowState};
use crate::collect::{RangeOutcome, Segment};
use crate::model::ranges::clip;
use crate::model::{DeviceId, Instant, Range, Stream};
use crate::pipeline::commit::{Batch, UNSTABLE, WindowChange};
use crate::pipeline::read::round::{Purpose, Round};
use crate::planted::{self, Bug};

/// A window that settles empty is read again and reported if the windows before it held at least this number of events (median).
const USUAL_EVENTS_MIN: u64 = 50;
const USUAL_WINDOWS: usize = 14;

impl Round<'_> {
    /// Notes a segment: the service's clock, the progress, and the stability of its range.
    pub fn note_read(&self, segment: &Segment) {
        self.ctx.service().observe(segment.ended_at);
        self.ctx.progress.read(&self.ctx.team, self.stream, segment.range, segment.events.len() as u64, true);
        match segment.outcome {
            RangeOutcome::Confirmed => self.ctx.memory.note_stable(self.stream, segment.range),
            RangeOutcome::Unstable => self.ctx.memory.note_unstable(self.stream, segment.range),
            RangeOutcome::Deferred => {
                self.ctx.memory.note_unstable(self.stream, segment.range);
                self.ctx.deferred().open.push((self.stream, segment.range));
            }
        }
    }

    pub async fn batch_of(&self, segment: Segment, purpose: Purpose) -> Result<Batch, ArchiveError> {
        let mut batch = Batch::default();
        self.note_anomalies(&mut batch, segment.range, segment.stats.anomalies);
        let is_unstable = segment.outcome != RangeOutcome::Confirmed;
        let read_at = segment.began_at.unwrap_or(self.now).min(self.ctx.service().now());
        for window in self.windows.overlapping(segment.range) {
            let part = clip(segment.range, window).expect("BUG: the window overlaps the segment");
            let mut change = WindowChange::new(self.stream, window, read_at);
            change.ended_at = self.ctx.service().now().max(read_at);
            (change.walks, change.requests) = (segment.stats.walks, segment.stats.requests);
            if is_unstable && purpose == Purpose::Settle {
                change.unstable = Some(part);
                batch.findings.extend(self.unstable(part));
            } else if is_unstable {
                batch.deferred_findings.push(self.unstable_window(part));
            } else if purpose == Purpose::Settle && segment.began_at.is_some_and(|at| at < window.end.plus(self.lag)) {
                // By the answer's own date the lag has not passed. Either this date or the date that planned the reading is wrong.
                tracing::debug!(stream = %self.stream, %window, "read before its lag had passed");
            } else if let Some((finding, is_believed)) = self.suspicious_answer(window, &segment, read_at).await? {
                change.confirmed = is_believed.then_some(part);
                batch.deferred_findings.push(finding);
            } else {
                change.confirmed = Some(part);
            }
            if purpose == Purpose::Settle && change.confirmed.is_some() {
                batch.findings.extend(self.left_meanwhile(part, segment.ended_at).await);
            }
            batch.changes.push(change);
        }
        if purpose == Purpose::Settle || !planted::is(Bug::RescanUnread) {
            self.add_events(&mut batch, segment.events);
        }
        Ok(batch)
    }

    fn unstable(&self, part: Range) -> Vec<Finding> {
        let known =
            self.windows.held.values().any(|held| held.unstable.iter().any(|open| clip(part, *open) == Some(part)));
        if known {
            return Vec::new();
        }
        let why = "the list changed at every read of this range: events may be missing until a later read is stable";
        vec![self.unstable_window(part), self.finding(FindingKind::Gap, UNSTABLE, part, why)]
    }

    fn unstable_window(&self, part: Range) -> Finding {
        let why = "the list changed during every walk; Annals keeps the events that it saw";
        self.finding(FindingKind::UnstableWindow, &part.to_string(), part, why)
    }

    /// The finding of a suspicious empty answer, read `at`, for a window that has archived events or usually has some, and
    /// whether the program believes the answer: only if no later re-scan will read the window again.
    async fn suspicious_answer(
        &self,
        window: Range,
        segment: &Segment,
        at: Instant,
    ) -> Result<Option<(Finding, bool)>, ArchiveError> {
        if clip(window, segment.range) != Some(window) || segment.owned_by(window) > 0 {
            return Ok(None);
        }
        let record = self.windows.held.get(&window.start);
        let held = record.map_or(0, |held| held.events);
        // A re-scan counts the events that the service no longer shows.
        if held > 0 && record.is_some_and(|record| record.state != WindowState::Provisional) {
            return Ok(None);
        }
        let before = self.windows.held.range(..window.start).rev().take(USUAL_WINDOWS);
        let mut before: Vec<u64> = before.map(|(_, held)| held.events).collect();
        before.sort_unstable();
        let usual = before.get(before.len() / 2).copied().unwrap_or(0);
        let is_usual = held == 0 && (usual < USUAL_EVENTS_MIN || before.len() < USUAL_WINDOWS);
        if is_usual || (held > 0 && self.is_emptied(window).await?) {
            return Ok(None);
        }
        let is_last = self.ctx.settings.rescans_wanted() <= self.ctx.settings.rescans_due(window.end, at);
        let reason = format!("an empty answer: the archive holds {held} events of the window, and {usual} are usual");
        let finding = self.finding(FindingKind::Silence, &window.to_string(), window, &reason);
        Ok(Some((finding, is_last || held == 0)))
    }

    /// Whether the computers of all archived events of a window were removed: the service has deleted these events.
    pub async fn is_emptied(&self, window: Range) -> Result<bool, ArchiveError> {
        if self.stream != Stream::Connections {
            return Ok(false);
        }
        let of_removed = move |writer: &mut TeamWriter| {
            let (state, used) = (writer.state(), writer.rows().computers_in(window)?);
            // An empty list says nothing: a recorded loss does.
            let is_recorded = |id: &DeviceId| state.gaps().any(|gap| gap.subject == id.as_str());
            let is_removed =
                |id: &DeviceId| !state.devices.contains(id) && (!state.devices.is_empty() || is_recorded(id));
            Ok(used.iter().all(|id| id.as_ref().is_some_and(is_removed)))
        };
        self.ctx.with_writer(of_removed).await
    }
}

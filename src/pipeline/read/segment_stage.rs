//! The segment stage: what one part of a span brings becomes events of windows, changes of their records and findings, and goes to
//! the commit stage.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::channel::mpsc;

use crate::archive::{Finding, FindingKind, WindowState};
use crate::collect::{Counted, Outcome, Segment};
use crate::model::{Instant, Range};
use crate::pipeline::commit::batch::UNSTABLE;
use crate::pipeline::commit::change::WindowChange;
use crate::pipeline::error::RoundError;
use crate::pipeline::plan::ranges::{clip, missing, union};
use crate::pipeline::read::round::{OfWindow, Purpose, Round};
use crate::pipeline::team::budget::Permit;
use crate::pipeline::workers::Work;
use crate::planted::{self, Bug};

/// A window that settles empty though windows before it held so many events (median) is read again and reported.
const SILENCE_EVENTS_MIN: u64 = 50;
const SILENCE_WINDOWS: usize = 14;

/// An empty answer that is suspicious, and whether it is believed all the same.
struct Silence {
    finding: Finding,
    is_believed: bool,
}

/// One part of a span, read, and its events by their windows.
pub struct Sorted {
    pub segment: Segment,
    pub pieces: Work<Vec<OfWindow>>,
    pub permit: Permit,
}

/// Takes the segments of one stream's spans.
pub struct SegmentStage<'a> {
    round: &'a Round<'a>,
    purpose: Purpose,
    /// What of each window is read again, by the window's start.
    rescanned: BTreeMap<Instant, Vec<Range>>,
}

impl<'a> SegmentStage<'a> {
    pub fn new(round: &'a Round<'a>, purpose: Purpose) -> Self {
        Self { round, purpose, rescanned: BTreeMap::new() }
    }

    /// Works until the channel is closed, or an error ends it.
    ///
    /// # Errors
    /// When the commit stage has ended.
    pub async fn run(mut self, mut segments: mpsc::Receiver<Sorted>) -> Result<(), RoundError> {
        while let Some(segment) = segments.next().await {
            self.send(segment).await?;
        }
        Ok(())
    }

    async fn send(&mut self, Sorted { segment, pieces, permit }: Sorted) -> Result<(), RoundError> {
        let (round, purpose) = (self.round, self.purpose);
        let pieces = pieces.end().await;
        round.ctx.service().hear(segment.ended_at);
        round.ctx.progress.read(&round.ctx.team, round.stream, segment.range, count_of(&pieces), true);
        match segment.outcome {
            Outcome::Confirmed => round.ctx.memory.note_stable(round.stream, segment.range),
            Outcome::Unstable => round.ctx.memory.note_unstable(round.stream, segment.range),
            Outcome::Deferred => {
                round.ctx.memory.note_unstable(round.stream, segment.range);
                round.ctx.deferred.note_open(round.stream, segment.range);
            }
        }
        let is_unstable = segment.outcome != Outcome::Confirmed;
        let read_at = segment.began_at.unwrap_or(round.now).min(round.ctx.service().now());
        let mut changes = Vec::new();
        let (mut findings, mut notes) = (Vec::new(), Vec::new());
        for window in round.index.overlapping(segment.range) {
            let part = clip(segment.range, window).expect("BUG: the window overlaps the segment");
            let mut change = WindowChange::new(round.stream, window, read_at);
            change.ended_at = round.ctx.service().now().max(read_at);
            (change.walks, change.requests) = (segment.stats.walks, segment.stats.requests);
            if let Some(held) = round.windows.get(&window.start) {
                (change.late_before, change.is_resumed) = (held.late, !held.confirmed.is_empty());
            }
            if is_unstable && purpose == Purpose::Settle {
                change.unstable = Some(part);
                findings.extend(self.unstable(part));
            } else if is_unstable {
                notes.push(self.unstable_window(part));
            } else if purpose == Purpose::Settle && segment.began_at.is_some_and(|at| at < window.end.plus(round.lag)) {
                // By the answer's own date the lag has not passed: the date that planned this was wrong, or this one is.
                tracing::debug!(stream = %round.stream, %window, "read before its lag had passed");
            } else if let Some(finding) = self.silence(window, part, &pieces, read_at) {
                change.confirmed = finding.is_believed.then_some(part);
                notes.push(finding.finding);
            } else {
                change.confirmed = Some(part);
            }
            if purpose == Purpose::Rescan && segment.outcome == Outcome::Confirmed {
                let parts = self.rescanned.entry(window.start).or_default();
                *parts = union(parts, part);
                change.rescanned = missing(window, parts).is_empty();
            }
            changes.push(change);
        }
        round
            .ctx
            .add_held(permit, |batch| {
                round.note_anomalies(batch, segment.range, segment.stats.anomalies);
                changes.into_iter().for_each(|change| batch.add_change(change));
                batch.findings.extend(findings);
                notes.into_iter().for_each(|finding| batch.note_finding(finding));
                if purpose == Purpose::Settle || !planted::is(Bug::RescanUnread) {
                    round.sort_in(batch, pieces);
                }
            })
            .await?;
        Ok(())
    }

    fn unstable(&self, part: Range) -> Vec<Finding> {
        let known =
            self.round.windows.values().any(|held| held.unstable.iter().any(|open| clip(part, *open) == Some(part)));
        if known {
            return Vec::new();
        }
        let why = "never held still: events may be missing until it does";
        vec![self.unstable_window(part), self.round.finding(FindingKind::Gap, UNSTABLE, Some(part), why)]
    }

    fn unstable_window(&self, part: Range) -> Finding {
        let why = "the list changed under every walk; what was seen is kept";
        self.round.finding(FindingKind::UnstableWindow, &part.to_string(), Some(part), why)
    }

    /// An empty answer where there were events, or where there should be: not believed as long as it can be asked again.
    fn silence(&self, window: Range, part: Range, pieces: &[OfWindow], read_at: Instant) -> Option<Silence> {
        let owned = |event: &Counted| event.event.at().is_some_and(|at| part.owns(at));
        if part != window || pieces.iter().flat_map(|(_, piece)| piece.events()).any(owned) {
            return None;
        }
        let held = self.round.windows.get(&window.start).filter(|held| held.state == WindowState::Provisional);
        let held = held.map_or(0, |held| held.events);
        let mut before: Vec<u64> =
            self.round.windows.range(..window.start).rev().take(SILENCE_WINDOWS).map(|(_, held)| held.events).collect();
        before.sort_unstable();
        let usual = before.get(before.len() / 2).copied().unwrap_or(0);
        if held == 0 && (usual < SILENCE_EVENTS_MIN || before.len() < SILENCE_WINDOWS) {
            return None;
        }
        let last = self.round.ctx.settings.tiers() <= self.round.ctx.settings.tiers_passed(window.end, read_at);
        let reason = format!("read empty, though {held} events of it are archived and {usual} are usual");
        let finding = self.round.finding(FindingKind::Silence, &window.to_string(), Some(window), &reason);
        Some(Silence { finding, is_believed: last || held == 0 })
    }
}

fn count_of(pieces: &[OfWindow]) -> u64 {
    pieces.iter().map(|(_, piece)| piece.events().len() as u64).sum()
}

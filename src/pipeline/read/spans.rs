//! Reading spans side by side: settling what is past its lag, and re-scanning what is settled.

use std::collections::BTreeMap;

use futures::channel::mpsc;
use futures::stream::FuturesUnordered;
use futures::{SinkExt, StreamExt};

use crate::archive::{Finding, FindingKind, WindowState};
use crate::collect::{Asked, Counted, Leaf, Outcome, SpanReader};
use crate::model::{Digest, Instant, Multiset, Range};
use crate::planted::{self, Bug};

use crate::pipeline::commit::batch::UNSTABLE;
use crate::pipeline::commit::change::WindowChange;
use crate::pipeline::error::RoundError;
use crate::pipeline::plan::ranges::{clip, missing, union};
use crate::pipeline::plan::span_planner::SpanPlanner;
use crate::pipeline::read::round::{OfWindow, PAD_SECONDS, Purpose, Round};
use crate::pipeline::settings::{READ_EVENTS_MAX, RESCAN_EVENTS_MAX, RESCAN_WALK_EVENTS_MAX, WALK_EVENTS_MAX};
use crate::pipeline::team::budget::Share;
use crate::pipeline::workers::Work;

/// Leaves that may wait for the committer.
const LEAVES_WAITING_MAX: usize = 1;
/// Seconds of padding of the re-scans, each of which shifts the bounds.
const RESCAN_PAD_SECONDS: [i64; 3] = [61, 601, 3601];
/// A window that settles empty though windows before it held so many events (median) is read again and reported.
const SILENCE_EVENTS_MIN: u64 = 50;
const SILENCE_WINDOWS: usize = 14;

/// An empty answer that is suspicious, and whether it is believed all the same.
struct Silence {
    finding: Finding,
    is_believed: bool,
}

/// One part of a span, read, and its events by their windows.
struct Sorted {
    leaf: Leaf,
    pieces: Work<Vec<OfWindow>>,
    share: Share,
}

impl Round<'_> {
    /// Reads spans side by side, and adds what they bring in the order in which they bring it.
    pub async fn spans(&self, mut planner: SpanPlanner, purpose: Purpose) -> Result<(), RoundError> {
        self.ctx.progress.planned(&self.ctx.team, self.stream, planner.seconds_left());
        let (sender, leaves) = mpsc::channel::<Sorted>(LEAVES_WAITING_MAX);
        let read = async move {
            let mut reading = FuturesUnordered::new();
            let mut failed = None;
            let mut is_stopped = false;
            let mut handed_out = 0;
            loop {
                while !is_stopped && reading.len() < self.ctx.readings_at_once() {
                    // A run that has worked long enough still makes some way each time.
                    if handed_out > 0 && self.ctx.is_spent() && !planner.is_empty() {
                        self.ctx.leave_rest();
                        is_stopped = true;
                        break;
                    }
                    handed_out += 1;
                    let Some(span) = planner.next_span() else { break };
                    reading.push(self.span(span, purpose, sender.clone()));
                }
                match reading.next().await {
                    Some(Ok(Some(parts))) => parts.into_iter().for_each(|(part, events)| planner.learn(part, events)),
                    Some(Ok(None)) => is_stopped = true,
                    Some(Err(error)) => {
                        is_stopped = true;
                        failed = failed.or(Some(error));
                    }
                    None => break,
                }
            }
            failed.map_or(Ok(()), Err)
        };
        let add = async move {
            let mut leaves = leaves;
            let mut rescanned: BTreeMap<Instant, Vec<Range>> = BTreeMap::new();
            while let Some(leaf) = leaves.next().await {
                self.leaf(leaf, purpose, &mut rescanned).await?;
            }
            Ok::<(), RoundError>(())
        };
        // Each side owns its end of the channel, so that either one's end, or error, ends the other.
        let (read, added) = futures::future::join(read, add).await;
        added.and(read)
    }

    /// Reads one span and sends its parts; returns these and how many events each brought, to learn the density from, or
    /// `None` when nobody takes the parts any more.
    async fn span(
        &self,
        span: Range,
        purpose: Purpose,
        mut leaves: mpsc::Sender<Sorted>,
    ) -> Result<Option<Vec<(Range, u64)>>, RoundError> {
        let pad = if purpose == Purpose::Settle { PAD_SECONDS } else { self.rescan_pad(span) };
        let prior = match purpose {
            Purpose::Settle => None,
            Purpose::Rescan => Some(self.archived(span).await?),
        };
        let (read_events_max, walk_events_max) = match purpose {
            Purpose::Settle => (READ_EVENTS_MAX, WALK_EVENTS_MAX),
            Purpose::Rescan => (RESCAN_EVENTS_MAX, RESCAN_WALK_EVENTS_MAX),
        };
        let asked = Asked { range: span, pad };
        let mut reader = SpanReader::new(self.lists, asked, walk_events_max as u64, prior).within(self.budget.clone());
        let mut parts = Vec::new();
        while !reader.is_done() {
            let mut share = self.ctx.reserve(read_events_max).await?;
            match reader.next().await {
                Ok(Some(mut leaf)) => {
                    // What stands in a re-scan's padding says nothing of the span: spans would become ever shorter, down to a second.
                    let owned = leaf.events.iter().filter(|held| held.event.at().is_some_and(|at| leaf.range.owns(at)));
                    parts.push((leaf.range, owned.count() as u64));
                    share.hold(leaf.events.len(), true);
                    let pieces = self.pieces(leaf.range, std::mem::take(&mut leaf.events));
                    if leaves.send(Sorted { leaf, pieces, share }).await.is_err() {
                        return Ok(None);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let (events, _) = reader.into_partial();
                    if !events.is_empty() {
                        let pieces = self.of_windows(events);
                        self.ctx.add_held(share, |batch| self.sort_in(batch, pieces)).await?;
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(Some(parts))
    }

    async fn archived(&self, span: Range) -> Result<Multiset<Digest>, RoundError> {
        Ok(self.ctx.stored(self.stream, span).await?.into_iter().map(|event| event.digest).collect())
    }

    /// Another padding at each re-scan, so that bounds fall elsewhere.
    fn rescan_pad(&self, span: Range) -> i64 {
        let done = self.windows.get(&self.index.of(span.start).start).map_or(0, |held| held.rescans as usize);
        RESCAN_PAD_SECONDS[done.min(RESCAN_PAD_SECONDS.len() - 1)]
    }

    async fn leaf(
        &self,
        Sorted { leaf, pieces, share }: Sorted,
        purpose: Purpose,
        rescanned: &mut BTreeMap<Instant, Vec<Range>>,
    ) -> Result<(), RoundError> {
        let pieces = pieces.end().await;
        self.ctx.service().hear(leaf.ended_at);
        self.ctx.progress.read(&self.ctx.team, self.stream, leaf.range, count_of(&pieces), true);
        match leaf.outcome {
            Outcome::Confirmed => self.ctx.memory.note_still(self.stream, leaf.range),
            Outcome::Unstable => self.ctx.memory.note_restless(self.stream, leaf.range),
            Outcome::Left => {
                self.ctx.memory.note_restless(self.stream, leaf.range);
                self.ctx.left.note(self.stream, leaf.range);
            }
        }
        let is_unstable = leaf.outcome != Outcome::Confirmed;
        let read_at = leaf.began_at.unwrap_or(self.now).min(self.ctx.service().now());
        let mut changes = Vec::new();
        let (mut findings, mut notes) = (Vec::new(), Vec::new());
        for window in self.index.overlapping(leaf.range) {
            let part = clip(leaf.range, window).expect("BUG: the window overlaps the leaf");
            let mut change = WindowChange::new(self.stream, window, read_at);
            change.ended_at = self.ctx.service().now().max(read_at);
            (change.walks, change.requests) = (leaf.stats.walks, leaf.stats.requests);
            if let Some(held) = self.windows.get(&window.start) {
                (change.late_before, change.is_resumed) = (held.late, !held.confirmed.is_empty());
            }
            if is_unstable && purpose == Purpose::Settle {
                change.unstable = Some(part);
                findings.extend(self.unstable(part));
            } else if is_unstable {
                notes.push(self.unstable_window(part));
            } else if purpose == Purpose::Settle && leaf.began_at.is_some_and(|at| at < window.end.plus(self.lag)) {
                // By the answer's own date the lag has not passed: the date that planned this was wrong, or this one is.
                tracing::debug!(stream = %self.stream, %window, "read before its lag had passed");
            } else if let Some(finding) = self.silence(window, part, &pieces, read_at) {
                change.confirmed = finding.is_believed.then_some(part);
                notes.push(finding.finding);
            } else {
                change.confirmed = Some(part);
            }
            if purpose == Purpose::Rescan && leaf.outcome == Outcome::Confirmed {
                let parts = rescanned.entry(window.start).or_default();
                *parts = union(parts, part);
                change.rescanned = missing(window, parts).is_empty();
            }
            changes.push(change);
        }
        self.ctx
            .add_held(share, |batch| {
                self.note_anomalies(batch, leaf.range, leaf.stats.anomalies);
                changes.into_iter().for_each(|change| batch.add_change(change));
                batch.findings.extend(findings);
                notes.into_iter().for_each(|finding| batch.note_finding(finding));
                if purpose == Purpose::Settle || !planted::is(Bug::RescanUnread) {
                    self.sort_in(batch, pieces);
                }
            })
            .await?;
        Ok(())
    }

    fn unstable(&self, part: Range) -> Vec<Finding> {
        let known = self.windows.values().any(|held| held.unstable.iter().any(|open| clip(part, *open) == Some(part)));
        if known {
            return Vec::new();
        }
        let why = "never held still: events may be missing until it does";
        vec![self.unstable_window(part), self.finding(FindingKind::Gap, UNSTABLE, Some(part), why)]
    }

    fn unstable_window(&self, part: Range) -> Finding {
        let why = "the list changed under every walk; what was seen is kept";
        self.finding(FindingKind::UnstableWindow, &part.to_string(), Some(part), why)
    }

    /// An empty answer where there were events, or where there should be: not believed as long as it can be asked again.
    fn silence(&self, window: Range, part: Range, pieces: &[OfWindow], read_at: Instant) -> Option<Silence> {
        let owned = |event: &Counted| event.event.at().is_some_and(|at| part.owns(at));
        if part != window || pieces.iter().flat_map(|(_, piece)| piece.events()).any(owned) {
            return None;
        }
        let held = self.windows.get(&window.start).filter(|held| held.state == WindowState::Provisional);
        let held = held.map_or(0, |held| held.events);
        let mut before: Vec<u64> =
            self.windows.range(..window.start).rev().take(SILENCE_WINDOWS).map(|(_, held)| held.events).collect();
        before.sort_unstable();
        let usual = before.get(before.len() / 2).copied().unwrap_or(0);
        if held == 0 && (usual < SILENCE_EVENTS_MIN || before.len() < SILENCE_WINDOWS) {
            return None;
        }
        let last = self.ctx.settings.tiers() <= self.ctx.settings.tiers_passed(window.end, read_at);
        let reason = format!("read empty, though {held} events of it are archived and {usual} are usual");
        let finding = self.finding(FindingKind::Silence, &window.to_string(), Some(window), &reason);
        Some(Silence { finding, is_believed: last || held == 0 })
    }
}

fn count_of(pieces: &[OfWindow]) -> u64 {
    pieces.iter().map(|(_, piece)| piece.events().len() as u64).sum()
}

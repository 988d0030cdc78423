//! One round of a windowed stream: the open windows' new events, then what is past its lag, then re-scans.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::channel::mpsc;
use futures::stream::FuturesUnordered;
use futures::{SinkExt, StreamExt};

use crate::api::ApiError;
use crate::archive::{Finding, FindingKind, ReadPoint, WalkPoint, WindowState};
use crate::collect::{Anomalies, Asked, Counted, Leaf, Lists, Outcome, SpanReader, TailReader};
use crate::model::{DeviceId, Digest, Instant, Multiset, Range, Stream};

use super::RoundError;
use super::batch::{Batch, UNSTABLE};
use super::change::{StreamChange, WindowChange};
use super::context::TeamContext;
use super::plan::{SpanPlanner, StreamPlan, Windows, plan};
use super::ranges::{clip, missing, union};
use super::settings::{SPAN_EVENTS_TARGET, WALK_EVENTS_MAX};

/// Leaves that may wait for the committer.
const LEAVES_WAITING_MAX: usize = 4;
/// Events of an open window after which a chunk is handed on.
const TAIL_EVENTS_MAX: usize = 10_000;
/// Seconds of padding: of a first reading, and of the re-scans, each of which shifts the bounds.
const PAD_SECONDS: i64 = 1;
const RESCAN_PAD_SECONDS: [i64; 3] = [61, 601, 3601];
/// A window that settles empty though windows before it held so many events (median) is read again and reported.
const SILENCE_EVENTS_MIN: u64 = 50;
const SILENCE_WINDOWS: usize = 14;

/// Why spans are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Settle,
    Rescan,
}

/// Reads one stream up to now. `first` is where a first reading begins; `now` the service's clock.
///
/// # Errors
/// When the service does not answer or the archive cannot be written; what was read before is committed or waits for
/// the team's next commit.
pub async fn read_stream(ctx: &TeamContext, stream: Stream, first: Instant, now: Instant) -> Result<(), RoundError> {
    let one_list = [None];
    match read_lists(ctx, stream, first, now, &one_list).await {
        Err(RoundError::Api(ApiError::NotFound { .. })) if stream == Stream::Connections => {
            let computers = ctx.source.devices(&ctx.team).await?;
            let lists: Vec<Option<DeviceId>> = computers.body.into_iter().map(Some).collect();
            note_deprecated(ctx, stream, lists.len(), now).await?;
            read_lists(ctx, stream, first, now, &lists).await
        }
        other => other,
    }
}

async fn read_lists(
    ctx: &TeamContext,
    stream: Stream,
    first: Instant,
    now: Instant,
    devices: &[Option<DeviceId>],
) -> Result<(), RoundError> {
    let (record, windows) = ctx.stream_state(stream);
    let plan = plan(&record, &windows, first, &ctx.settings, now);
    let lists = Lists { source: &*ctx.source, team: &ctx.team, stream, devices, limit: ctx.limit(stream) };
    let round = Round { ctx, stream, now, lists, index: WindowIndex::new(ctx, &windows, &plan, now), windows };
    if record.begins != plan.begins {
        round.begin(plan.begins.expect("BUG: a plan has a beginning"), record.begins).await?;
    }
    for window in &plan.open {
        round.tail(*window).await?;
    }
    if ctx.settings.until.is_none() {
        round.look_ahead().await?;
    }
    let stride = ctx.settings.grid.length();
    round.spans(SpanPlanner::new(&plan.unread, stride), Purpose::Settle).await?;
    round.spans(SpanPlanner::new(&plan.rescans, round.rescan_stride(&plan.rescans)), Purpose::Rescan).await?;
    if ctx.settings.until.is_none() {
        let point = ReadPoint { at: ctx.service.now(), read_to: now };
        ctx.add(|batch| {
            batch.note_stream(stream, StreamChange { read_points: vec![point], ..StreamChange::default() });
        })
        .await?;
    }
    Ok(())
}

async fn note_deprecated(ctx: &TeamContext, stream: Stream, lists: usize, now: Instant) -> Result<(), RoundError> {
    let known = ctx.with_state(|state| state.findings.iter().any(|(_, f)| f.kind == FindingKind::DeprecatedHistory));
    if known {
        return Ok(());
    }
    let finding = Finding {
        stream: Some(stream),
        kind: FindingKind::DeprecatedHistory,
        subject: "history/devices".to_owned(),
        from: None,
        to: None,
        reason: "not found upstream: read computer by computer from the deprecated history".to_owned(),
        count: lists as u64,
        found_at: now,
    };
    Ok(ctx.add(|batch| batch.findings.push(finding)).await?)
}

/// The windows that events are sorted into.
struct WindowIndex {
    windows: BTreeMap<Instant, Range>,
    grid: crate::model::WindowGrid,
}

impl WindowIndex {
    fn new(ctx: &TeamContext, held: &Windows, plan: &StreamPlan, now: Instant) -> Self {
        let grid = ctx.settings.grid;
        let mut windows: BTreeMap<Instant, Range> =
            held.values().map(|window| (window.range.start, window.range)).collect();
        windows.extend(plan.open.iter().map(|window| (window.start, *window)));
        let mut start = plan.begins.unwrap_or(now);
        while start <= now {
            let window = windows.get(&start).copied().unwrap_or_else(|| {
                let fresh = grid.window_from(start);
                let next = windows.range(start..).next().map_or(fresh.end, |(next, _)| *next);
                Range::new(start, fresh.end.min(next))
            });
            windows.insert(window.start, window);
            start = window.end;
        }
        Self { windows, grid }
    }

    fn of(&self, at: Instant) -> Range {
        let known = self.windows.range(..=at).next_back().map(|(_, window)| *window);
        known.filter(|window| window.owns(at)).unwrap_or_else(|| self.grid.window_of(at))
    }

    fn overlapping(&self, range: Range) -> Vec<Range> {
        let mut all = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let window = self.of(at);
            at = window.end;
            all.push(window);
        }
        all
    }
}

struct Round<'a> {
    ctx: &'a TeamContext,
    stream: Stream,
    now: Instant,
    lists: Lists<'a>,
    index: WindowIndex,
    windows: Windows,
}

impl Round<'_> {
    /// Records where the archive begins: what is older was out of reach, or not asked for.
    async fn begin(&self, begins: Instant, before: Option<Instant>) -> Result<(), RoundError> {
        let why = "what is older was out of reach of the first reading, or not asked for";
        let mut finding = self.finding(FindingKind::ArchiveBegins, self.stream.as_str(), None, why);
        finding.from = Some(begins);
        let first = before.is_none().then_some(ReadPoint { at: self.now, read_to: begins });
        let change = StreamChange { begins: Some(begins), read_points: first.into_iter().collect(), snapshot: None };
        let add = |batch: &mut Batch| {
            batch.change_stream(self.stream, change);
            batch.findings.push(finding);
        };
        Ok(self.ctx.add(add).await?)
    }

    /// The new events of a window whose lag has not passed.
    async fn tail(&self, window: Range) -> Result<(), RoundError> {
        let asked = Asked { range: window, pad: PAD_SECONDS };
        let held = self.windows.get(&window.start);
        let before = held.and_then(|held| held.walk.clone());
        let resume = before.as_ref().and_then(decode_point);
        let mut reader = TailReader::new(self.lists, asked, resume, TAIL_EVENTS_MAX);
        while let Some(chunk) = reader.next().await? {
            self.ctx.service.hear(chunk.began_at);
            self.ctx.progress.read(&self.ctx.team, self.stream, window, chunk.events.len() as u64, false);
            let walk = chunk.point.map(encode_point).filter(|point| point.offset > 0);
            if chunk.events.is_empty() && (walk.is_none() || walk == before) {
                continue;
            }
            let mut change = WindowChange::new(self.stream, window, chunk.began_at.unwrap_or(self.now));
            (change.walks, change.requests, change.walk) = (chunk.stats.walks, chunk.stats.requests, walk);
            self.ctx
                .add(|batch| {
                    self.note_anomalies(batch, window, chunk.stats.anomalies);
                    batch.add_change(change);
                    self.sort_in(batch, chunk.events);
                })
                .await?;
        }
        Ok(())
    }

    /// Events that the service dates into the future are archived in their own windows, and drag nothing along.
    async fn look_ahead(&self) -> Result<(), RoundError> {
        let from = self.index.of(self.now).end;
        let asked = Asked { range: Range::new(from, Instant::LATEST), pad: PAD_SECONDS };
        let mut reader = TailReader::new(self.lists, asked, Some((0, Vec::new())), TAIL_EVENTS_MAX);
        while let Some(chunk) = reader.next().await? {
            if chunk.events.is_empty() {
                continue;
            }
            self.ctx.add(|batch| self.sort_in(batch, chunk.events)).await?;
        }
        Ok(())
    }

    /// Reads spans side by side, and adds what they bring in the order in which they bring it.
    async fn spans(&self, mut planner: SpanPlanner, purpose: Purpose) -> Result<(), RoundError> {
        self.ctx.progress.planned(&self.ctx.team, self.stream, planner.seconds_left());
        let (sender, leaves) = mpsc::channel::<Leaf>(LEAVES_WAITING_MAX);
        let read = async move {
            let mut reading = FuturesUnordered::new();
            let mut failed = None;
            loop {
                while failed.is_none() && reading.len() < self.ctx.settings.concurrency {
                    let Some(span) = planner.next_span() else { break };
                    reading.push(self.span(span, purpose, sender.clone()));
                }
                match reading.next().await {
                    Some(Ok((part, events))) => planner.learn(part, events),
                    Some(Err(error)) => failed = failed.or(Some(error)),
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

    /// Reads one span and sends its parts; returns the last part and its events, to learn the density from.
    async fn span(
        &self,
        span: Range,
        purpose: Purpose,
        mut leaves: mpsc::Sender<Leaf>,
    ) -> Result<(Range, u64), RoundError> {
        let pad = if purpose == Purpose::Settle { PAD_SECONDS } else { self.rescan_pad(span) };
        let prior = match purpose {
            Purpose::Settle => None,
            Purpose::Rescan => Some(self.archived(span).await?),
        };
        let mut reader = SpanReader::new(self.lists, Asked { range: span, pad }, WALK_EVENTS_MAX, prior);
        let mut learned = (span, 0);
        loop {
            match reader.next().await {
                Ok(Some(leaf)) => {
                    learned = (leaf.range, leaf.events.len() as u64);
                    if leaves.send(leaf).await.is_err() {
                        return Ok(learned);
                    }
                }
                Ok(None) => return Ok(learned),
                Err(error) => {
                    let (events, _) = reader.into_partial();
                    if !events.is_empty() {
                        self.ctx.add(|batch| self.sort_in(batch, events)).await?;
                    }
                    return Err(error.into());
                }
            }
        }
    }

    async fn archived(&self, span: Range) -> Result<Multiset<Digest>, RoundError> {
        Ok(self.ctx.stored(self.stream, span).await?.into_iter().map(|event| event.digest).collect())
    }

    /// Another padding at each re-scan, so that bounds fall elsewhere.
    fn rescan_pad(&self, span: Range) -> i64 {
        let done = self.windows.get(&self.index.of(span.start).start).map_or(0, |held| held.rescans as usize);
        RESCAN_PAD_SECONDS[done.min(RESCAN_PAD_SECONDS.len() - 1)]
    }

    fn rescan_stride(&self, windows: &[Range]) -> Duration {
        let held = windows.iter().filter_map(|window| self.windows.get(&window.start));
        let (events, seconds) = held
            .fold((1, 1), |(events, seconds), held| (events + held.events, seconds + held.range.length().as_secs()));
        Duration::from_secs(seconds.saturating_mul(SPAN_EVENTS_TARGET) / events).max(Duration::from_secs(1))
    }

    async fn leaf(
        &self,
        leaf: Leaf,
        purpose: Purpose,
        rescanned: &mut BTreeMap<Instant, Vec<Range>>,
    ) -> Result<(), RoundError> {
        self.ctx.service.hear(leaf.ended_at);
        self.ctx.progress.read(&self.ctx.team, self.stream, leaf.range, leaf.events.len() as u64, true);
        let read_at = leaf.began_at.unwrap_or(self.now);
        let mut changes = Vec::new();
        let mut findings = Vec::new();
        for window in self.index.overlapping(leaf.range) {
            let part = clip(leaf.range, window).expect("BUG: the window overlaps the leaf");
            let mut change = WindowChange::new(self.stream, window, read_at);
            (change.walks, change.requests) = (leaf.stats.walks, leaf.stats.requests);
            if leaf.outcome == Outcome::Unstable {
                change.unstable = (purpose == Purpose::Settle).then_some(part);
                findings.extend(self.unstable(part, purpose));
            } else if let Some(finding) = self.silence(window, part, &leaf.events, read_at) {
                change.confirmed = finding.is_believed.then_some(part);
                findings.push(finding.finding);
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
            .add(|batch| {
                self.note_anomalies(batch, leaf.range, leaf.stats.anomalies);
                changes.into_iter().for_each(|change| batch.add_change(change));
                batch.findings.extend(findings);
                self.sort_in(batch, leaf.events);
            })
            .await?;
        Ok(())
    }

    fn sort_in(&self, batch: &mut Batch, events: Vec<Counted>) {
        for event in events {
            let window = event.event.at().map(|at| self.index.of(at));
            batch.add_event(self.stream, window, event);
        }
    }

    /// A kind of contradiction is a finding the first time; how often it happens is the log's.
    fn note_anomalies(&self, batch: &mut Batch, range: Range, met: Anomalies) {
        for (subject, count) in met.named().filter(|(_, count)| *count > 0) {
            tracing::debug!(stream = %self.stream, %range, subject, count, "the service's paging contradicts itself");
            let mut finding =
                self.finding(FindingKind::PagingAnomaly, subject, Some(range), "not as documented; not relied on");
            finding.count = count;
            batch.note_finding(finding);
        }
    }

    fn finding(&self, kind: FindingKind, subject: &str, range: Option<Range>, reason: &str) -> Finding {
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

    fn unstable(&self, part: Range, purpose: Purpose) -> Vec<Finding> {
        let known = self.windows.values().any(|held| held.unstable.iter().any(|open| clip(part, *open) == Some(part)));
        if known {
            return Vec::new();
        }
        let why = "the list changed under every walk; what was seen is kept";
        let mut findings = vec![self.finding(FindingKind::UnstableWindow, &part.to_string(), Some(part), why)];
        if purpose == Purpose::Settle {
            let why = "never held still: events may be missing until it does";
            findings.push(self.finding(FindingKind::Gap, UNSTABLE, Some(part), why));
        }
        findings
    }

    /// An empty answer where there were events, or where there should be: not believed as long as it can be asked again.
    fn silence(&self, window: Range, part: Range, events: &[Counted], read_at: Instant) -> Option<Silence> {
        let owned = |event: &Counted| event.event.at().is_some_and(|at| part.owns(at));
        if part != window || events.iter().any(owned) {
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

struct Silence {
    finding: Finding,
    is_believed: bool,
}

fn decode_point(point: &WalkPoint) -> Option<(u64, Vec<[u8; 16]>)> {
    let anchors = point.anchors.iter().map(|anchor| {
        let mut bytes = [0; 16];
        hex::decode_to_slice(anchor, &mut bytes).ok().map(|()| bytes)
    });
    Some((point.offset, anchors.collect::<Option<Vec<_>>>()?))
        .filter(|(offset, anchors)| anchors.len() as u64 <= *offset)
}

fn encode_point((offset, anchors): (u64, Vec<[u8; 16]>)) -> WalkPoint {
    WalkPoint { offset, anchors: anchors.iter().map(hex::encode).collect() }
}

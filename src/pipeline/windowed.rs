//! One round of a windowed stream: the open windows' new events, then what is past its lag, then re-scans.

use std::sync::Arc;
use std::time::Duration;

use crate::api::ApiError;
use crate::archive::{Dataset, Finding, FindingKind, ReadPoint, WalkPoint};
use crate::collect::{Anomalies, Asked, Counted, Lists, PageLimit, SplitBudget, TailReader, TailStart};
use crate::model::{DeviceId, Instant, Range, Stream};
use crate::planted::{self, Bug};

use super::RoundError;
use super::batch::Batch;
use super::change::{StreamChange, WindowChange};
use super::context::TeamContext;
use super::piece::Piece;
use super::plan::{SpanPlanner, Windows, first_stride, lag, plan, rescan_stride};
use super::settings::{READ_EVENTS_MAX, WALK_EVENTS_MAX};
use super::spans::Purpose;
use super::window_index::WindowIndex;
use super::workers::Work;

/// Fewer events of a window are joined row by row: columns that turn out to be worth nothing cost something, too.
const COLUMNS_AHEAD_MIN: usize = 4;
/// How far into the future events are looked for.
const LOOK_AHEAD: Duration = Duration::from_secs(400 * 86_400);
/// Seconds of padding of a first reading.
pub const PAD_SECONDS: i64 = 1;

/// Reads one stream up to now. `first` is where a first reading begins; `now` the service's clock.
///
/// # Errors
/// When the service does not answer or the archive cannot be written; what was read before is committed or waits for
/// the team's next commit.
pub async fn read_stream(ctx: &TeamContext, stream: Stream, first: Instant, now: Instant) -> Result<(), RoundError> {
    let one_list = [None];
    match read_lists(ctx, stream, first, now, &one_list).await {
        Err(error @ RoundError::Api(ApiError::NotFound { .. })) if stream == Stream::Connections => {
            if !may_be_absent(ctx).await? {
                return Err(error);
            }
            let computers = ctx.source.devices(&ctx.team).await?;
            let lists: Vec<Option<DeviceId>> = computers.body.ids.into_iter().map(Some).collect();
            note_deprecated(ctx, stream, lists.len(), now).await?;
            // What the first attempt began is not begun twice.
            ctx.commit().await?;
            read_lists(ctx, stream, first, now, &lists).await
        }
        other => other,
    }
}

/// Where `history/devices` has answered before, a 404 is a fault: the deprecated history tells the same events in other
/// words, and each would be archived once more.
async fn may_be_absent(ctx: &TeamContext) -> Result<bool, RoundError> {
    ctx.settle().await?;
    Ok(ctx.with_state(|state| {
        let is_known = state.findings.iter().any(|(_, f)| f.kind == FindingKind::DeprecatedHistory);
        is_known || state.files_of(Dataset::Connections).next().is_none()
    }))
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
    let index = WindowIndex::new(ctx.settings.grid, &windows, &plan, now);
    let (lag, budget) = (lag(&record, &ctx.settings), Arc::default());
    let round = Round { ctx, stream, now, lists, lag, index, windows, budget };
    if record.begins != plan.begins {
        round.begin(plan.begins.expect("BUG: a plan has a beginning"), record.begins).await?;
    }
    for window in &plan.open {
        round.tail(*window).await?;
    }
    if ctx.settings.until.is_none() && ctx.memory.looks_ahead(stream) && !planted::is(Bug::FutureUnread) {
        round.look_ahead().await?;
    }
    let grid = ctx.settings.grid;
    let stride = first_stride(grid, &round.windows);
    let (unread, rescans) = ctx.memory.but_restless(stream, (&plan.unread, &plan.rescans));
    round.spans(SpanPlanner::new(&unread, grid, stride), Purpose::Settle).await?;
    round.spans(SpanPlanner::new(&rescans, grid, rescan_stride(&round.windows, &rescans)), Purpose::Rescan).await?;
    let left = ctx.left.all().iter().filter(|(of, _)| *of == stream).count();
    if left > 0 {
        let team = &ctx.team;
        tracing::warn!(%team, %stream, ranges = left, "the list does not hold still: the rest stays open until another round");
    }
    // A read point of the connections stands only beside the look at the computers that follows it.
    if ctx.settings.until.is_none() && stream != Stream::Connections && !ctx.is_unfinished() {
        let point = ReadPoint { at: ctx.service().now(), read_to: now, listed_at: None };
        ctx.note_point(stream, StreamChange { read_points: vec![point], ..StreamChange::default() }).await?;
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

/// Events of one window; without a window, events that none owns.
pub type OfWindow = (Option<Range>, Piece);

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
    /// Records where the archive begins: what is older was out of reach, or not asked for.
    async fn begin(&self, begins: Instant, before: Option<Instant>) -> Result<(), RoundError> {
        let why = "what is older was out of reach of the first reading, or not asked for";
        let mut finding = self.finding(FindingKind::ArchiveBegins, self.stream.as_str(), None, why);
        finding.from = Some(begins);
        let first = before.is_none().then_some(ReadPoint { at: self.now, read_to: begins, listed_at: None });
        let read_points = first.into_iter().collect();
        let change = StreamChange { begins: Some(begins), read_points, ..StreamChange::default() };
        let add = |batch: &mut Batch| {
            batch.change_stream(self.stream, change);
            batch.findings.push(finding);
        };
        self.ctx.add(add).await?;
        if self.stream == Stream::Connections {
            // Durable before the first event is read: a computer that is removed from here on leaves a gap, whatever ends this run.
            self.ctx.commit().await?;
        }
        Ok(())
    }

    /// The new events of a window whose lag has not passed.
    async fn tail(&self, window: Range) -> Result<(), RoundError> {
        let asked = Asked { range: window, pad: PAD_SECONDS };
        let held = self.windows.get(&window.start);
        let before = held.and_then(|held| held.walk.clone());
        let start = TailStart::of(before.as_ref().and_then(decode_point), held.map_or(0, |held| held.events));
        let mut reader = TailReader::new(self.lists, asked, start, WALK_EVENTS_MAX);
        while !reader.is_done() {
            let mut share = self.ctx.reserve(READ_EVENTS_MAX).await?;
            let Some(chunk) = reader.next().await? else { break };
            share.hold(chunk.events.len(), true);
            self.ctx.service().hear(chunk.began_at);
            self.ctx.progress.read(&self.ctx.team, self.stream, window, chunk.events.len() as u64, false);
            let walk = chunk.point.map(encode_point).filter(|point| point.offset > 0);
            if chunk.events.is_empty() && (walk.is_none() || walk == before) {
                continue;
            }
            let mut change = WindowChange::new(self.stream, window, chunk.began_at.unwrap_or(self.now));
            (change.walks, change.requests, change.walk) = (chunk.stats.walks, chunk.stats.requests, walk);
            let pieces = self.pieces(window, chunk.events).end().await;
            self.ctx
                .add_held(share, |batch| {
                    self.note_anomalies(batch, window, chunk.stats.anomalies);
                    batch.add_change(change);
                    self.sort_in(batch, pieces);
                })
                .await?;
        }
        Ok(())
    }

    /// Events that the service dates into the future are archived in their own windows, and drag nothing along. A
    /// service that does not answer such a question loses nothing: the windows are read when their time comes.
    async fn look_ahead(&self) -> Result<(), RoundError> {
        let from = self.index.of(self.now).end.min(Instant::LATEST);
        let asked = Asked { range: Range::new(from, from.plus(LOOK_AHEAD).min(Instant::LATEST)), pad: PAD_SECONDS };
        // A refusal must not be taken for one of the page size.
        let limit = PageLimit::fixed(self.lists.limit.events());
        let lists = Lists { limit: &limit, ..self.lists };
        let mut reader = TailReader::new(lists, asked, TailStart::Point(0, Vec::new()), WALK_EVENTS_MAX);
        loop {
            let mut share = self.ctx.reserve(READ_EVENTS_MAX).await?;
            match reader.next().await {
                Ok(None) => return Ok(()),
                Ok(Some(chunk)) if chunk.events.is_empty() => {}
                Ok(Some(chunk)) => {
                    share.hold(chunk.events.len(), true);
                    let pieces = self.of_windows(chunk.events);
                    self.ctx.add_held(share, |batch| self.sort_in(batch, pieces)).await?;
                }
                Err(error) => {
                    tracing::debug!(stream = %self.stream, %error, "the service does not say what lies in the future");
                    return Ok(());
                }
            }
        }
    }

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
        let (team, stream, seen_at) = (self.ctx.team.clone(), self.stream, self.ctx.service().now());
        let make = move || {
            let many = pieces.iter_mut().filter(|(_, piece)| piece.events().len() >= COLUMNS_AHEAD_MIN);
            many.for_each(|(_, piece)| piece.make_columns(&team, stream, seen_at));
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

//! One round of a windowed stream: first the new events of open windows, then windows past their lag, then re-scans.

use std::sync::Arc;
use std::time::Duration;

use crate::api::ApiError;
use crate::archive::{Finding, FindingKind, ReadPoint};
use crate::collect::Lists;
use crate::model::{Dataset, DeviceId, Instant, Stream};
use crate::planted::{self, Bug};

use crate::pipeline::commit::{Batch, StreamChange};
use crate::pipeline::error::RoundError;
use crate::pipeline::plan::{SpanPlanner, StreamPlan, StreamWindows, first_stride, lag, plan, rescan_stride};
use crate::pipeline::read::round::{Purpose, Round, RoundStart};
use crate::pipeline::team::TeamContext;

/// The wait before the service is asked again for a history that it does not seem to have.
const NOT_FOUND_PAUSE: Duration = Duration::from_secs(3);

/// Reads one stream up to the start of the round.
///
/// # Errors
/// When the service does not answer, or the commit stage has ended. The events read before are committed.
pub async fn read_stream(ctx: &TeamContext, stream: Stream, start: RoundStart) -> Result<(), RoundError> {
    let mut read = read_lists(ctx, stream, start, &[None]).await;
    if stream != Stream::Connections || !is_not_found(&read) || !may_be_absent(ctx).await? {
        return read;
    }
    if !is_known_absent(ctx).await {
        // A single wrong 404 would archive the whole backfill in the deprecated form.
        ctx.clock.sleep(NOT_FOUND_PAUSE).await;
        read = read_lists(ctx, stream, start, &[None]).await;
        if !is_not_found(&read) || !may_be_absent(ctx).await? {
            return read;
        }
        tracing::warn!(team = %ctx.team, "the service has no `history/devices`: Annals reads the deprecated history of each computer");
    }
    read_computers(ctx, start).await
}

/// Reads the deprecated history of each computer.
async fn read_computers(ctx: &TeamContext, start: RoundStart) -> Result<(), RoundError> {
    let (team, stream) = (&ctx.team, Stream::Connections);
    let lists: Vec<Option<DeviceId>> = ctx.source.devices(team).await?.body.ids.into_iter().map(Some).collect();
    if lists.is_empty() {
        tracing::warn!(%team, "the service lists no computers: without their histories, Annals confirms no connections");
        ctx.deferred().unread.insert(stream);
        return Ok(());
    }
    note_deprecated(ctx, lists.len(), start.now).await?;
    // The beginning of the archive is recorded once.
    ctx.inbox.commit().await?;
    read_lists(ctx, stream, start, &lists).await
}

fn is_not_found(read: &Result<(), RoundError>) -> bool {
    matches!(read, Err(RoundError::Api(ApiError::NotFound { .. })))
}

/// Whether an earlier round found that the service has no team history.
async fn is_known_absent(ctx: &TeamContext) -> bool {
    ctx.with_state(|state| state.findings.iter().any(|(_, found)| found.kind == FindingKind::DeprecatedHistory)).await
}

/// If `history/devices` has answered before, a 404 is a fault. The deprecated history has the same events with other
/// text. It would archive each event twice.
async fn may_be_absent(ctx: &TeamContext) -> Result<bool, RoundError> {
    // Also count the events that this round has read before.
    ctx.inbox.commit().await?;
    Ok(is_known_absent(ctx).await
        || ctx.with_state(|state| state.files_of(Dataset::Connections).next().is_none()).await)
}

async fn read_lists(
    ctx: &TeamContext,
    stream: Stream,
    start: RoundStart,
    devices: &[Option<DeviceId>],
) -> Result<(), RoundError> {
    let (grid, RoundStart { now, first, plan_span }) = (ctx.settings.grid, start);
    let mut windows = ctx.with_state(|state| StreamWindows::of(state, stream, grid)).await;
    let plan = plan(&mut windows, first, &ctx.settings, now);
    let plan = ctx.with_state(|state| plan.without_expired(state, stream)).await;
    let limit = ctx.memory.limits[stream as usize].clone();
    let (source, team) = (ctx.source.clone(), ctx.team.clone());
    let lists = Lists { source, team, stream, devices: devices.into(), limit };
    let (lag, budget) = (lag(&windows.record, &ctx.settings), Arc::default());
    let round = Round { ctx, stream, now, plan_span, lists, lag, windows, budget };
    if round.windows.record.begins != Some(plan.begins) {
        round.begin(plan.begins).await?;
    }
    for window in &plan.open {
        round.tail(*window).await?;
    }
    if ctx.settings.until.is_none() && ctx.memory.is_look_ahead_due(stream) && !planted::is(Bug::FutureUnread) {
        round.look_ahead().await?;
    }
    let stride = first_stride(&round.windows);
    let StreamPlan { unread, rescans, .. } = plan.without_paused(&ctx.memory.paused(stream));
    round.spans(SpanPlanner::new(&unread, grid, stride), Purpose::Settle).await?;
    round.spans(SpanPlanner::new(&rescans, grid, rescan_stride(&round.windows, &rescans)), Purpose::Rescan).await?;
    let left = ctx.deferred().open.iter().filter(|(of, _)| *of == stream).count();
    if left > 0 {
        let team = &ctx.team;
        tracing::warn!(%team, %stream, ranges = left, "the list changes at each read: these ranges stay open until the next round");
    }
    // The check of the computers notes the read point of connections.
    if stream != Stream::Connections && ctx.is_read(stream) {
        let point = ReadPoint::ended(ctx.service().now(), now);
        ctx.note_point(stream, point, StreamChange::default()).await?;
    }
    Ok(())
}

async fn note_deprecated(ctx: &TeamContext, lists: usize, now: Instant) -> Result<(), RoundError> {
    let reason = "the service has no team history: Annals reads the deprecated history of each computer";
    let finding =
        Finding::new(Some(Stream::Connections), FindingKind::DeprecatedHistory, "history/devices", reason, now);
    let finding = Finding { count: lists as u64, ..finding };
    Ok(ctx.add(|batch| batch.deferred_findings.push(finding)).await?)
}

impl Round<'_> {
    /// Records where the archive begins: older events are out of reach, or were not asked for.
    async fn begin(&self, begins: Instant) -> Result<(), RoundError> {
        let why = "the backfill could not reach older events, or the settings excluded them";
        let (stream, kind) = (Some(self.stream), FindingKind::ArchiveBegins);
        let finding = Finding::new(stream, kind, self.stream.as_str(), why, self.now);
        let span = self.ctx.memory.plan_span().flatten().filter(|_| self.stream == Stream::Connections);
        // The plan's span can begin inside the first window.
        let from = span.map_or(begins, |span| begins.max(self.now.minus(span)));
        let finding = Finding { from: Some(from), ..finding };
        let is_first = self.windows.record.begins.is_none();
        let first = is_first.then_some(ReadPoint { at: self.now, read_to: begins, listed_at: None });
        let change = StreamChange { begins: Some(begins), plan_span: span, snapshot: None };
        let add = |batch: &mut Batch| {
            batch.streams.push((self.stream, change));
            batch.read_points.extend(first.map(|point| (self.stream, point)));
            batch.is_due = true;
            batch.findings.push(finding);
        };
        self.ctx.add(add).await?;
        if self.stream == Stream::Connections {
            // Durable before the first event is read: from now on each removal of a computer leaves a gap.
            self.ctx.inbox.commit().await?;
        }
        Ok(())
    }
}

//! One round of one team: the three streams in parallel, then computers, seals and the inventory.

use std::sync::Arc;
use std::time::Duration;

use crate::api::ApiError;
use crate::archive::{ArchiveError, ReadPoint};
use crate::model::{Instant, LedgerSeq, Stream};
use crate::planted::{self, Bug};

use crate::pipeline::commit::{CommitCounts, Committer, channel, seal};
use crate::pipeline::error::RoundError;
use crate::pipeline::expiry::expire_on_schedule;
use crate::pipeline::plan::read_to;
use crate::pipeline::read::{RoundStart, gaps_behind_span, poll_billing, read_stream};
use crate::pipeline::scan::{ConnectionsRead, ScanRound, note_computers, scan_inventory};
use crate::pipeline::sessions::catch_up_all;
use crate::pipeline::team::{Deferred, TeamContext, TeamEdges};

/// If the first date differs from the machine's clock by more than this, further requests check it.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(86_400);

/// The result of a round of a team.
#[derive(Debug, Default)]
pub struct TeamRound {
    /// The start of the backfill, if the archive held nothing of this team.
    pub first: Option<Instant>,
    /// The plan's span: shown by the service, configured, or shown to an earlier round.
    pub plan_span: Option<Duration>,
    /// The team's name, if this round read it.
    pub name: Option<String>,
    pub committed: CommitCounts,
    /// The ledger's lines without a signature, if a key is configured.
    pub unsigned_lines: u64,
    /// The failures by stream. All other streams succeeded.
    pub failures: Vec<(Option<Stream>, RoundError)>,
    /// The scan of the inventory.
    pub scan: ScanRound,
    pub deferred: Deferred,
}

impl TeamRound {
    /// Whether the round did everything that was requested.
    pub fn is_done(&self) -> bool {
        self.failures.is_empty() && self.scan.failures.is_empty()
    }
}

/// Reads one team up to now and commits it: readings and the commit stage run concurrently.
pub async fn read_team(edges: Arc<TeamEdges>) -> TeamRound {
    let (inbox, messages) = channel(edges.team.clone());
    let ctx = TeamContext::new(edges.clone(), inbox);
    let (mut round, ended) = futures::join!(read_all(ctx), Committer::new(edges.clone()).run(messages));
    remember(&edges, &ended).await;
    round.committed = ended.committed;
    round.unsigned_lines = edges.writer().await.unsigned_lines();
    if let Some(error) = ended.error {
        // Other failures only report that the stage has ended.
        round.failures.retain(|(_, failure)| !matches!(failure, RoundError::Archive(ArchiveError::Poisoned { .. })));
        round.failures.push((None, error.into()));
    }
    round
}

/// Reads everything of a team in a round. Its end closes the inbox of the commit stage.
async fn read_all(ctx: TeamContext) -> TeamRound {
    let mut round = TeamRound::default();
    let began_at = ctx.with_state(|state| state.seq).await;
    if let Err(error) = read(&ctx, &mut round).await {
        round.failures.push((None, error));
    }
    // Commit the events already read, even after a failure.
    let mut kept = ctx.inbox.commit().await;
    let is_readable = !round.failures.iter().any(|(_, failure)| matches!(failure, RoundError::Archive(_)));
    if kept.is_ok() && is_readable {
        kept = maintain(&ctx, began_at).await;
    }
    round.failures.extend(kept.err().map(|error| (None, error.into())));
    round.deferred.clone_from(&ctx.deferred());
    round
}

/// Makes lagging sessions, and by schedule expires months and removes files that the ledger no longer names. `began_at` is the last
/// line at the start of the round: a round that commits nothing does not list the files.
async fn maintain(edges: &TeamEdges, began_at: LedgerSeq) -> Result<(), ArchiveError> {
    catch_up_all(edges).await?;
    expire_on_schedule(edges).await?;
    let has_committed = edges.with_state(|state| state.seq > began_at).await;
    if !has_committed || !edges.memory.is_vacuum_due() {
        return Ok(());
    }
    let now = edges.clock.now();
    let found = edges.with_writer(move |writer| writer.vacuum(now)).await?;
    if !found.expired.is_empty() {
        tracing::debug!(team = %edges.team, files = found.expired.len(), "vacuumed files that no line names any more");
    }
    Ok(())
}

/// Keeps the read points for later rounds of this process.
async fn remember(edges: &TeamEdges, ended: &Committer) {
    ended.read_points.iter().for_each(|(stream, point)| edges.memory.note_point(*stream, *point));
    for stream in Stream::ALL.into_iter().filter(|stream| edges.settings.reads(*stream)) {
        let newest = |points: &[ReadPoint]| points.iter().copied().max_by_key(|point| point.read_to);
        let held = edges.with_state(|state| newest(&state.streams.get(&stream)?.read_points)).await;
        held.into_iter().for_each(|point| edges.memory.note_point(stream, point));
    }
}

async fn read(ctx: &TeamContext, round: &mut TeamRound) -> Result<(), RoundError> {
    catch_up_all(ctx).await?;
    let is_first = !ctx.settings.streams.is_empty() && ctx.with_state(|state| state.streams.is_empty()).await;
    let held = ctx.with_state(|state| state.streams.get(&Stream::Connections).cloned()).await.unwrap_or_default();
    let recorded = held.plan_span();
    let shown = match plan_span(ctx, &mut round.name).await {
        Ok(shown) => shown,
        Err(error) => span_without_view(ctx, error, recorded, round).await?,
    };
    round.plan_span = shown.or(recorded);
    let now = ctx.service().now();
    let first = ctx.settings.backfill_start(round.plan_span, now);
    round.first = is_first.then_some(first);
    let mut computers = None;
    let mut noted = Ok(());
    if ctx.settings.reads(Stream::Connections) && held.begins.is_none() {
        // From now on a computer that is removed during the backfill is known.
        noted = note_computers(ctx, now, None, &mut computers).await;
    }
    note_uncommitted_points(ctx).await?;
    let start = RoundStart { now, first, plan_span: round.plan_span };
    let behind = gaps_behind_span(ctx, round.plan_span, now).await;
    if !planted::is(Bug::SpanGapLostOnFailure) {
        // The next commit writes these gaps. Else an interrupted round would let their events look read in time.
        ctx.add(|batch| behind.iter().for_each(|gap| batch.deferred_findings.push(gap.clone()))).await?;
    }
    let stream = |stream: Stream| async move {
        if !ctx.settings.reads(stream) {
            return Ok(());
        }
        match stream {
            Stream::Billing => poll_billing(ctx).await,
            Stream::Activity | Stream::Connections => read_stream(ctx, stream, start).await,
        }
    };
    let connections = async {
        noted?;
        stream(Stream::Connections).await
    };
    let (activity, connections, billing) =
        futures::join!(stream(Stream::Activity), connections, stream(Stream::Billing));
    let is_read = ctx.settings.reads(Stream::Connections) && connections.is_ok() && ctx.is_read(Stream::Connections);
    let results = [(Stream::Activity, activity), (Stream::Connections, connections), (Stream::Billing, billing)];
    round.failures.extend(results.into_iter().filter_map(|(stream, result)| Some((Some(stream), result.err()?))));
    if ctx.settings.reads(Stream::Connections) {
        let read = is_read
            .then(|| ConnectionsRead { point: ReadPoint::ended(ctx.service().now(), now), plan_span: round.plan_span });
        if is_read {
            ctx.add(|batch| batch.findings.extend(behind)).await?;
        }
        note_computers(ctx, now, read, &mut computers).await?;
    }
    ctx.inbox.commit().await?;
    catch_up_all(ctx).await?;
    seal(ctx).await?;
    round.scan = scan_inventory(ctx, computers).await;
    Ok(())
}

/// The plan's span, shown or configured, and the team's name, unless this process read them recently.
async fn plan_span(ctx: &TeamContext, name: &mut Option<String>) -> Result<Option<Duration>, ApiError> {
    if let Some(known) = ctx.memory.plan_span() {
        return Ok(known);
    }
    let view = ctx.source.team(&ctx.team).await?;
    observe(ctx, view.at).await?;
    let plan_span = view.body.plan_span.or(ctx.settings.plan_span);
    ctx.memory.note_view(plan_span);
    name.clone_from(&view.body.name);
    if let Some(name) = name {
        ctx.progress.named(&ctx.team, name);
    }
    Ok(plan_span)
}

/// The plan's span if the team's view fails: the one of an earlier round. So a failure of this request alone does not stop the
/// reading of streams, whose events would leave the plan's span.
///
/// # Errors
/// `failure`, if the archive holds nothing of a stream yet, or if the service does not list the team.
async fn span_without_view(
    ctx: &TeamContext,
    failure: ApiError,
    recorded: Option<Duration>,
    round: &mut TeamRound,
) -> Result<Option<Duration>, ApiError> {
    let streams = &ctx.settings.streams;
    let has_begun = !streams.is_empty()
        && ctx.with_state(|state| streams.iter().all(|stream| state.streams.contains_key(stream))).await;
    let teams = if has_begun { ctx.source.teams().await.ok() } else { None };
    let Some(teams) = teams.filter(|teams| teams.body.contains(&ctx.team)) else { return Err(failure) };
    observe(ctx, teams.at).await?;
    let span = recorded.or(ctx.settings.plan_span);
    // The next rounds do not wait for the view.
    ctx.memory.note_view(span);
    if ctx.is_out_of_time() {
        // Other teams wait for this run. The next run reads the streams.
        return Err(failure);
    }
    tracing::warn!(team = %ctx.team, error = %failure, "reading on with the plan's span of an earlier round");
    round.failures.push((None, failure.into()));
    Ok(span)
}

/// Notes uncommitted read points of the streams that this round does not read. The round's commit, if any, writes them.
async fn note_uncommitted_points(ctx: &TeamContext) -> Result<(), ArchiveError> {
    for stream in Stream::ALL.into_iter().filter(|stream| !ctx.settings.reads(*stream)) {
        let held = ctx.with_state(|state| state.streams.get(&stream).and_then(|held| read_to(held, None))).await;
        let uncommitted = ctx.memory.last_point(stream).filter(|point| held.is_some_and(|held| held < point.read_to));
        if let Some(point) = uncommitted {
            ctx.add(|batch| batch.read_points.push((stream, point))).await?;
        }
    }
    Ok(())
}

/// Observes the first date of a round. If it differs much from the machine's clock, one of the two is wrong, and the
/// dates of further answers decide.
async fn observe(ctx: &TeamContext, date: Option<Instant>) -> Result<(), ApiError> {
    ctx.service().forget();
    ctx.service().observe(date);
    let ours = ctx.clock.now();
    if date.is_some_and(|date| date.since(ours).max(ours.since(date)) > CLOCKS_APART_MAX) {
        for _ in 0..2 {
            ctx.service().observe(ctx.source.teams().await?.at);
        }
    }
    Ok(())
}

//! One round of one team: the three streams side by side, then what only the whole can tell.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::api::ApiError;
use crate::archive::{
    ArchiveError, DeviceDelta, Draft, Finding, FindingKind, ReadPoint, TeamState, WindowState, month_of,
};
use crate::model::{DeviceId, Instant, Range, Stream};

use super::RoundError;
use super::change::StreamChange;
use super::context::TeamContext;
use super::flush::Flushed;
use super::ledger_poll::poll_billing;
use super::ranges::missing;
use super::removal::{Removal, devices_in, gap};
use super::settings::BACKFILL_DAYS_DEFAULT;
use super::windowed::read_stream;

/// Reading that stays this close behind the plan's span in a first backfill is still its beginning, not a loss.
const FIRST_READING_SLACK: Duration = Duration::from_secs(3600);
/// Months that one commit seals: written side by side.
const MONTHS_SEALED_AT_ONCE: usize = 4;

/// What a round of a team came to.
#[derive(Debug)]
pub struct TeamRound {
    /// Where a first reading begins, and what says so.
    pub first: Instant,
    /// The archive held nothing of the team before.
    pub is_first_reading: bool,
    pub plan_span: Option<Duration>,
    pub committed: Flushed,
    /// What could not be done, stream by stream; the rest was.
    pub failures: Vec<(Option<Stream>, RoundError)>,
}

/// Reads one team up to now and commits it.
pub async fn read_team(ctx: &TeamContext) -> TeamRound {
    let mut round = TeamRound {
        first: ctx.service.now(),
        is_first_reading: ctx.with_state(|state| state.streams.is_empty()),
        plan_span: None,
        committed: Flushed::default(),
        failures: Vec::new(),
    };
    if let Err(error) = read(ctx, &mut round).await {
        round.failures.push((None, error));
    }
    // Whatever was read is worth keeping, also where something else failed.
    if let Err(error) = ctx.commit().await {
        round.failures.push((None, error.into()));
    }
    round.committed = ctx.totals();
    round
}

async fn read(ctx: &TeamContext, round: &mut TeamRound) -> Result<(), RoundError> {
    let view = ctx.source.team(&ctx.team).await?;
    ctx.service.hear(view.at);
    let now = ctx.service.now();
    round.plan_span = view.body.plan_span;
    round.first = first_instant(ctx, round.plan_span, now);
    if ctx.with_state(|state| state.devices.is_empty()) {
        note_devices(ctx, now).await?;
    }
    let behind = fallen_behind(ctx, round.plan_span, now);
    let first = round.first;
    let stream = |stream: Stream| async move {
        if !ctx.settings.reads(stream) {
            return Ok(());
        }
        match stream {
            Stream::Billing => poll_billing(ctx).await,
            Stream::Activity | Stream::Connections => read_stream(ctx, stream, first, now).await,
        }
    };
    let (activity, connections, billing) =
        futures::join!(stream(Stream::Activity), stream(Stream::Connections), stream(Stream::Billing));
    if connections.is_ok() {
        let plan_span_seconds = round.plan_span.map(|span| span.as_secs());
        ctx.add(|batch| {
            batch.findings.extend(behind);
            batch.note_stream(Stream::Connections, StreamChange { plan_span_seconds, ..StreamChange::default() });
        })
        .await?;
    }
    let results = [(Stream::Activity, activity), (Stream::Connections, connections), (Stream::Billing, billing)];
    round.failures.extend(results.into_iter().filter_map(|(stream, result)| Some((Some(stream), result.err()?))));
    if ctx.settings.reads(Stream::Connections) {
        note_devices(ctx, now).await?;
    }
    ctx.commit().await?;
    note_removals_of_activity(ctx).await?;
    seal_months(ctx).await?;
    Ok(())
}

/// `--since`, else the plan's span where the team shows it, else 30 days.
fn first_instant(ctx: &TeamContext, plan_span: Option<Duration>, now: Instant) -> Instant {
    let span = plan_span.unwrap_or(Duration::from_secs(BACKFILL_DAYS_DEFAULT * 86_400));
    ctx.settings.since.unwrap_or_else(|| now.minus(span)).max(Instant::EARLIEST)
}

/// Compares the team's list of computers with the last one. What is missing was removed, and with it its history.
async fn note_devices(ctx: &TeamContext, began: Instant) -> Result<(), RoundError> {
    let listed: BTreeSet<DeviceId> = match ctx.source.devices(&ctx.team).await {
        Ok(served) => {
            ctx.service.hear(served.at);
            served.body.into_iter().collect()
        }
        Err(ApiError::NotFound { .. }) => {
            tracing::warn!(team = %ctx.team, "the service does not list this team's computers: a removal is seen in activity alone");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    // Activity that tells when a computer was removed must be committed, and so parsed, before the list is compared.
    ctx.commit().await?;
    let known = ctx.with_state(|state| state.devices.clone());
    let delta = DeviceDelta {
        added: listed.difference(&known).cloned().collect(),
        removed: known.difference(&listed).cloned().collect(),
    };
    if delta.is_empty() {
        return Ok(());
    }
    let told = removals_told(ctx, &known);
    let now = ctx.service.now().max(began);
    let gone = delta.removed.iter().map(|device| {
        let told = told.iter().rev().find(|removal| removal.device == *device).cloned();
        told.unwrap_or_else(|| Removal { device: device.clone(), at: now, there_until: began })
    });
    let gaps = gaps_of(ctx, &gone.collect::<Vec<_>>());
    ctx.add(|batch| {
        batch.findings.extend(gaps);
        batch.devices = delta;
    })
    .await?;
    Ok(())
}

/// Removals that new activity tells of, of computers that are listed again: their former history is gone all the same.
async fn note_removals_of_activity(ctx: &TeamContext) -> Result<(), RoundError> {
    let listed = ctx.with_state(|state| state.devices.clone());
    let told = removals_told(ctx, &listed);
    let gaps = gaps_of(ctx, &told);
    if !gaps.is_empty() {
        ctx.add(|batch| batch.findings.extend(gaps)).await?;
        ctx.commit().await?;
    }
    Ok(())
}

fn removals_told(ctx: &TeamContext, known: &BTreeSet<DeviceId>) -> Vec<Removal> {
    let mut told = Vec::new();
    for (at, text) in ctx.totals().removals {
        told.extend(devices_in(&text, known).into_iter().map(|device| Removal { device, at, there_until: at }));
    }
    told.sort_by_key(|removal| removal.at);
    told
}

fn gaps_of(ctx: &TeamContext, removals: &[Removal]) -> Vec<Finding> {
    ctx.with_state(|state| {
        let record = state.streams.get(&Stream::Connections).cloned().unwrap_or_default();
        let begins = record.begins.unwrap_or(Instant::EARLIEST);
        let found_at = ctx.service.now();
        let new = |finding: &Finding| {
            !state
                .gaps()
                .any(|known| (&known.subject, known.from, known.to) == (&finding.subject, finding.from, finding.to))
        };
        removals.iter().filter_map(|removal| gap(removal, &record.read_points, begins, found_at)).filter(new).collect()
    })
}

/// A gap where reading has fallen behind the span that the plan shows.
fn fallen_behind(ctx: &TeamContext, plan_span: Option<Duration>, now: Instant) -> Option<Finding> {
    let horizon = now.minus(plan_span?);
    let from = ctx.with_state(|state| {
        let record = state.streams.get(&Stream::Connections)?;
        let begins = record.begins?;
        let read = record.read_points.last()?;
        let is_first_reading = record.read_points.len() == 1 && read.read_to == begins;
        let confirmed = confirmed_edge(state, begins, now);
        let slack = if is_first_reading { FIRST_READING_SLACK + ctx.settings.grid.length() } else { Duration::ZERO };
        Some(read.read_to.max(confirmed).plus(slack)).filter(|reached| *reached < horizon).map(|at| at.minus(slack))
    })?;
    Some(Finding {
        stream: Some(Stream::Connections),
        kind: FindingKind::Gap,
        subject: "plan_span".to_owned(),
        from: Some(from),
        to: Some(horizon),
        reason: "not read before the plan's span had passed: the service may show it no longer".to_owned(),
        count: 1,
        found_at: now,
    })
}

/// Up to where everything since `begins` is confirmed.
fn confirmed_edge(state: &TeamState, begins: Instant, now: Instant) -> Instant {
    let mut edge = begins;
    while let Some(window) = state.windows.get(&(Stream::Connections, edge)) {
        if window.state == WindowState::Provisional {
            let open = missing(window.range, &window.confirmed);
            return open.first().map_or(edge, |open| open.start).min(now);
        }
        edge = window.range.end;
    }
    edge.min(now)
}

/// Seals the months whose windows are all sealed.
async fn seal_months(ctx: &TeamContext) -> Result<(), ArchiveError> {
    for stream in Stream::ALL {
        for months in ctx.with_state(|state| sealable(state, stream)).chunks(MONTHS_SEALED_AT_ONCE) {
            let now = ctx.clock.now();
            let seal_months = months.iter().map(|month| (stream, *month)).collect();
            let draft = Draft { seal_months, ..Draft::default() };
            let done = ctx.with_writer(move |writer| writer.commit(draft, now)).await?;
            tracing::debug!(team = %ctx.team, %stream, ?months, ?done, "sealed months");
        }
    }
    Ok(())
}

/// Months that lie behind the first window that is not sealed.
pub fn sealable(state: &TeamState, stream: Stream) -> Vec<Range> {
    let Some(mut edge) = state.streams.get(&stream).and_then(|record| record.begins) else { return Vec::new() };
    let mut months: Vec<Range> = Vec::new();
    while let Some(window) = state.windows.get(&(stream, edge)) {
        if window.state != WindowState::Sealed {
            break;
        }
        months.push(month_of(edge));
        edge = window.range.end;
    }
    months.dedup();
    months.retain(|month| month.end <= edge && !state.is_month_sealed(stream, month.start));
    months
}

/// The newest moment up to which a stream was read, as of the last commit.
pub fn read_to(points: &[ReadPoint]) -> Option<Instant> {
    points.iter().map(|point| point.read_to).max()
}

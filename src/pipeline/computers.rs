//! The look at a team's computers that follows a reading of their connections: what is missing was removed, and with it
//! its history.
//!
//! The read point, the computers and the gaps go into one commit. So every read point that the archive holds was taken
//! with all the computers that it knows, and whatever activity has told since is told again after a crash.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::api::ApiError;
use crate::archive::{ArchiveError, DeviceDelta, Finding, ReadPoint, TeamState};
use crate::model::{DeviceId, Instant, Range, Stream, TeamId};

use super::RoundError;
use super::batch::Batch;
use super::change::StreamChange;
use super::context::TeamContext;
use super::removal::{Removal, devices_in, gap, tells_of_removal};
use super::windowed::read_stream;

/// Activity that tells of a removal is looked through again as far back, at the first look of a process.
const TOLD_LATE_MAX: Duration = Duration::from_secs(86_400);

/// Connections that were read up to now.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionsRead {
    pub point: ReadPoint,
    pub plan_span: Option<Duration>,
}

/// Compares the team's list of computers with the last one. `began` is the start of the round.
///
/// # Errors
/// When the service does not list the computers, or the archive fails: the next round looks from the same read point.
pub async fn note_computers(
    ctx: &TeamContext,
    began: Instant,
    read: Option<ConnectionsRead>,
) -> Result<(), RoundError> {
    let listed = list(ctx).await?;
    let (begun, noted) =
        ctx.pending(|batch| (batch.streams.get(&Stream::Connections).cloned(), batch.devices.clone())).await?;
    let mut known = ctx.with_state(|state| state.devices.clone());
    known.extend(noted.added);
    known.retain(|device| !noted.removed.contains(device));
    let mut listed = listed.unwrap_or_else(|| known.clone());
    let mut told = removals_told(ctx, &known, &listed).await?;
    if !are_told(&told, &known, &listed) {
        // A list that is cut short for once must not look like a removal.
        listed.extend(list(ctx).await?.unwrap_or_default());
        if !are_told(&told, &known, &listed) && !ctx.settings.reads(Stream::Activity) {
            // Activity knows when it was, and is read on a schedule of its own.
            ask_activity(ctx, began).await;
            told = removals_told(ctx, &known, &listed).await?;
        }
    }
    let is_told = |device: &&DeviceId| told.iter().any(|removal| removal.device == **device);
    let delta = DeviceDelta {
        added: listed.difference(&known).cloned().collect(),
        removed: known.difference(&listed).cloned().collect(),
    };
    let now = ctx.service().now().max(began);
    let untold: Vec<DeviceId> = delta.removed.iter().filter(|device| !is_told(device)).cloned().collect();
    told.extend(untold.into_iter().map(|device| Removal { device, at: now, there_until: began }));
    let gaps = gaps_of(ctx, begun.unwrap_or_default(), &told);
    ctx.add(|batch| {
        batch.findings.extend(gaps);
        batch.devices.added.extend(delta.added);
        batch.devices.removed.extend(delta.removed);
    })
    .await?;
    if let Some(read) = read {
        let (read_points, plan_span_seconds) = (vec![read.point], read.plan_span.map(|span| span.as_secs()));
        let change = StreamChange { read_points, plan_span_seconds, ..StreamChange::default() };
        ctx.note_point(Stream::Connections, change).await?;
    }
    Ok(())
}

/// Whether activity tells of every computer that is listed no more.
fn are_told(told: &[Removal], known: &BTreeSet<DeviceId>, listed: &BTreeSet<DeviceId>) -> bool {
    known.difference(listed).all(|device| told.iter().any(|removal| removal.device == *device))
}

/// Reads the activity up to now, where it is read at all. Without an answer the removal is taken to have happened at any
/// moment since the last look.
async fn ask_activity(ctx: &TeamContext, now: Instant) {
    let Some(begins) = ctx.with_state(|state| state.streams.get(&Stream::Activity).and_then(|held| held.begins)) else {
        return;
    };
    if let Err(error) = read_stream(ctx, Stream::Activity, begins, now).await {
        tracing::info!(team = %ctx.team, %error, "a computer is gone, and activity cannot be asked when");
    }
}

/// The computers listed now; `None` where the service has no such list.
async fn list(ctx: &TeamContext) -> Result<Option<BTreeSet<DeviceId>>, ApiError> {
    match ctx.source.devices(&ctx.team).await {
        Ok(served) => {
            ctx.service().hear(served.at);
            let ids = served.body.ids.iter().cloned().collect();
            ctx.keep_computers(served.body);
            Ok(Some(ids))
        }
        Err(ApiError::NotFound { .. }) => {
            tracing::warn!(team = %ctx.team, "the service does not list this team's computers: a removal is seen in activity alone");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What activity tells of the removal of computers: events of this round, those that runs before it left word of, and, at
/// the first look, archived ones since the last read point. A computer that is listed again has lost its former history
/// all the same.
async fn removals_told(
    ctx: &TeamContext,
    known: &BTreeSet<DeviceId>,
    listed: &BTreeSet<DeviceId>,
) -> Result<Vec<Removal>, ArchiveError> {
    let computers: BTreeSet<DeviceId> = known.union(listed).cloned().collect();
    let waiting = ctx.pending(|batch| removals_waiting(batch, &ctx.team)).await?;
    let mut texts: BTreeSet<(Instant, String)> = waiting.into_iter().chain(ctx.totals().removals).collect();
    texts.extend(ctx.memory.removals());
    let since = if ctx.memory.has_looked() { None } else { ctx.with_state(unseen_since) };
    if let Some(since) = since {
        let archived = ctx.with_writer(move |writer| {
            let mut found = Vec::new();
            writer.rows_in(Stream::Activity, Range { start: since, end: Instant::LATEST }, &mut |row| {
                if tells_of_removal(&row.event_type) {
                    found.push((row.time, String::from_utf8_lossy(&row.raw).into_owned()));
                }
                Ok(())
            })?;
            Ok(found)
        });
        texts.extend(archived.await?);
    }
    let mut told = Vec::new();
    for (at, text) in texts {
        let devices = devices_in(&text, &computers).into_iter();
        told.extend(devices.map(|device| Removal { device, at, there_until: at }));
    }
    Ok(told)
}

fn removals_waiting(batch: &Batch, team: &TeamId) -> Vec<(Instant, String)> {
    let pieces = batch.events.iter().filter(|((stream, _), _)| *stream == Stream::Activity).flat_map(|(_, held)| held);
    let mut told = Vec::new();
    for piece in pieces {
        piece.rows(team, Stream::Activity, |time, event_type, raw| {
            if tells_of_removal(event_type) {
                told.push((time, String::from_utf8_lossy(raw).into_owned()));
            }
        });
    }
    told
}

/// Removals before this moment were seen to: by the round that read up to it, or because they came before the archive.
fn unseen_since(state: &TeamState) -> Option<Instant> {
    let points = &state.streams.get(&Stream::Connections)?.read_points;
    match points.as_slice() {
        [] => None,
        [first] => Some(first.at),
        // Activity may have told of it only after the look at the computers, and the program may have ended then.
        [first, .., last] => Some(last.read_to.minus(TOLD_LATE_MAX).max(first.at)),
    }
}

/// The gaps that removals leave, less those that are recorded. `begun` waits for its commit.
fn gaps_of(ctx: &TeamContext, begun: StreamChange, removals: &[Removal]) -> Vec<Finding> {
    let found_at = ctx.service().now();
    ctx.with_state(|state| {
        let mut record = state.streams.get(&Stream::Connections).cloned().unwrap_or_default();
        begun.apply(&mut record);
        record.read_points.extend(ctx.memory.points(Stream::Connections));
        record.read_points.sort_by_key(|point| point.read_to);
        let begins = record.begins.unwrap_or(Instant::EARLIEST);
        // A removal that lies in a recorded gap of its computer has been seen to.
        let is_same =
            |known: &Finding, gap: &Finding| known.subject == gap.subject && known.from < gap.to && gap.to <= known.to;
        let is_new = |gap: &Finding| !state.gaps().any(|known| is_same(known, gap));
        let gaps = removals.iter().filter_map(|removal| gap(removal, &record.read_points, begins, found_at));
        gaps.filter(is_new).collect()
    })
}

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
use crate::normalize::normalize;

use super::RoundError;
use super::batch::Batch;
use super::change::StreamChange;
use super::context::TeamContext;
use super::removal::{Removal, devices_in, gap, tells_of_removal};

/// So many read points a plan's span are worth a commit of their own: a quiet team must not look like one that was not
/// read.
const READ_POINTS_A_SPAN: u32 = 4;

/// Connections that were read up to now.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionsRead {
    pub point: ReadPoint,
    pub plan_span: Option<Duration>,
}

/// Compares the team's list of computers with the last one. `began` is the start of the round, `behind` what it found
/// lost already.
///
/// # Errors
/// When the service does not list the computers, or the archive fails: the next round looks from the same read point.
pub async fn note_computers(
    ctx: &TeamContext,
    began: Instant,
    behind: Vec<Finding>,
    read: Option<ConnectionsRead>,
) -> Result<(), RoundError> {
    let listed = list(ctx).await?;
    let (begun, noted) =
        ctx.pending(|batch| (batch.streams.get(&Stream::Connections).cloned(), batch.devices.clone())).await?;
    let mut known = ctx.with_state(|state| state.devices.clone());
    known.extend(noted.added);
    known.retain(|device| !noted.removed.contains(device));
    let mut listed = listed.unwrap_or_else(|| known.clone());
    let mut told = removals_told(ctx, known.union(&listed).cloned().collect()).await?;
    let is_told = |device: &&DeviceId| told.iter().any(|removal| removal.device == **device);
    if !known.difference(&listed).all(|device| is_told(&device)) {
        // A list that is cut short for once must not look like a removal.
        listed.extend(list(ctx).await?.unwrap_or_default());
    }
    let delta = DeviceDelta {
        added: listed.difference(&known).cloned().collect(),
        removed: known.difference(&listed).cloned().collect(),
    };
    let now = ctx.service.now().max(began);
    let untold: Vec<DeviceId> = delta.removed.iter().filter(|device| !is_told(device)).cloned().collect();
    told.extend(untold.into_iter().map(|device| Removal { device, at: now, there_until: began }));
    let gaps = gaps_of(ctx, begun.unwrap_or_default(), &told);
    ctx.add(|batch| {
        batch.findings.extend(behind.into_iter().chain(gaps));
        batch.devices.added.extend(delta.added);
        batch.devices.removed.extend(delta.removed);
        if let Some(read) = read {
            let is_due = ctx.with_state(|state| is_point_due(state, read));
            let (read_points, plan_span_seconds) = (vec![read.point], read.plan_span.map(|span| span.as_secs()));
            let change = StreamChange { read_points, plan_span_seconds, ..StreamChange::default() };
            match is_due {
                true => batch.change_stream(Stream::Connections, change),
                false => batch.note_stream(Stream::Connections, change),
            }
        }
    })
    .await?;
    Ok(())
}

/// The computers listed now; `None` where the service has no such list.
async fn list(ctx: &TeamContext) -> Result<Option<BTreeSet<DeviceId>>, ApiError> {
    match ctx.source.devices(&ctx.team).await {
        Ok(served) => {
            ctx.service.hear(served.at);
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

/// Whether the last read point of the archive is so old that this one must not wait for something to happen.
fn is_point_due(state: &TeamState, read: ConnectionsRead) -> bool {
    let last = state.streams.get(&Stream::Connections).and_then(|record| record.read_points.last());
    let age = last.map(|last| read.point.read_to.since(last.read_to));
    read.plan_span.zip(age).is_some_and(|(span, age)| age > span / READ_POINTS_A_SPAN)
}

/// What activity tells of the removal of `computers`: events of this round, and archived ones since the last read point.
/// A computer that is listed again has lost its former history all the same.
async fn removals_told(ctx: &TeamContext, computers: BTreeSet<DeviceId>) -> Result<Vec<Removal>, ArchiveError> {
    let waiting = ctx.pending(|batch| removals_waiting(batch, &ctx.team)).await?;
    let mut texts: BTreeSet<(Instant, String)> = waiting.into_iter().chain(ctx.totals().removals).collect();
    if let Some(since) = ctx.with_state(unseen_since) {
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
    let events = batch.events.iter().filter(|((stream, _), _)| *stream == Stream::Activity).flat_map(|(_, held)| held);
    let rows = events.filter_map(|held| normalize(team, Stream::Activity, &held.event, 1, 1, Instant::EARLIEST).ok());
    let removals = rows.filter(|row| tells_of_removal(&row.event_type));
    removals.map(|row| (row.time, String::from_utf8_lossy(&row.raw).into_owned())).collect()
}

/// Removals before this moment were seen to: by the round that read up to it, or because they came before the archive.
fn unseen_since(state: &TeamState) -> Option<Instant> {
    let points = &state.streams.get(&Stream::Connections)?.read_points;
    match points.as_slice() {
        [] => None,
        [first] => Some(first.at),
        [.., last] => Some(last.read_to),
    }
}

/// The gaps that removals leave, less those that are recorded. `begun` waits for its commit.
fn gaps_of(ctx: &TeamContext, begun: StreamChange, removals: &[Removal]) -> Vec<Finding> {
    let found_at = ctx.service.now();
    ctx.with_state(|state| {
        let mut record = state.streams.get(&Stream::Connections).cloned().unwrap_or_default();
        begun.apply(&mut record);
        let begins = record.begins.unwrap_or(Instant::EARLIEST);
        let is_new = |gap: &Finding| {
            !state.gaps().any(|known| (&known.subject, known.from, known.to) == (&gap.subject, gap.from, gap.to))
        };
        let gaps = removals.iter().filter_map(|removal| gap(removal, &record.read_points, begins, found_at));
        gaps.filter(is_new).collect()
    })
}

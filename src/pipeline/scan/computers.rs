//! The check of a team's computers after a reading of their connections. A missing computer was removed, and its history with it.
//!
//! The read point, the computers and the gaps go into one commit. While activity is read, the computers are listed only
//! from time to time. Each read point records the time of the last list. `commit::computer_events` records the removals
//! that activity reports. This module finds only the others.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::api::{ApiError, Computers};
use crate::archive::{DeviceDelta, Finding, ReadPoint};
use crate::model::{DeviceId, Instant, Stream};
use crate::pipeline::commit::StreamChange;
use crate::pipeline::error::RoundError;
use crate::pipeline::loss::{ReadHistory, Removal};
use crate::pipeline::read::{RoundStart, read_stream};
use crate::pipeline::team::TeamContext;

/// A reading of connections up to now.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionsRead {
    pub point: ReadPoint,
    pub plan_span: Option<Duration>,
}

/// Compares the team's list of computers with the last list. `began` is the start of the round. `shown` passes the list
/// to the scan of the inventory.
///
/// # Errors
/// When the service does not list the computers, or the archive fails: the next round checks from the same read point.
pub async fn note_computers(
    ctx: &TeamContext,
    began: Instant,
    read: Option<ConnectionsRead>,
    shown: &mut Option<Computers>,
) -> Result<(), RoundError> {
    // The service gives its time in whole seconds, so it may seem to go back.
    let listed_at = read.map_or(began, |read| read.point.at).max(ctx.service().now());
    let known_now = async || ctx.with_state(|state| state.computers().cloned().collect::<BTreeSet<_>>()).await;
    let (mut known, ever) = (known_now().await, ctx.with_state(|state| state.devices_ever.clone()).await);
    if let Some(read) = read
        && let Some(at) = ctx.memory.listed_at((known.len(), ever.len()))
    {
        return note_read(ctx, read, at).await;
    }
    let listed = list(ctx, shown).await?;
    let mut listed = listed.unwrap_or_else(|| known.clone());
    // A service that has never listed a computer may hide them from the token, so its empty list proves no removal.
    let hidden =
        if listed.is_empty() && ctx.with_state(|state| state.devices.is_empty()).await { known.len() } else { 0 };
    if hidden > 0 {
        known.clear();
    }
    if !known.is_subset(&listed) {
        // An incomplete list must not look like a removal.
        listed.extend(list(ctx, shown).await?.unwrap_or_default());
    }
    if !known.is_subset(&listed) {
        // Activity contains the time of a removal, and the commit of that activity records it.
        ctx.inbox.commit().await?;
        ask_activity(ctx, began).await;
        ctx.inbox.commit().await?;
        known = known_now().await;
    }
    let delta = DeviceDelta {
        added: ctx.with_state(|state| listed.difference(&state.devices).cloned().collect()).await,
        removed: known.difference(&listed).cloned().collect(),
        ..DeviceDelta::default()
    };
    let gaps = gaps_without_activity(ctx, &delta.removed, began).await;
    if !delta.removed.is_empty() {
        ctx.memory.note_silent_removal();
    }
    ctx.memory.note_list(listed_at, (listed.len() + hidden, ever.union(&listed).count()));
    let answered_at = ctx.service().now();
    ctx.add(|batch| {
        batch.listed = Some((answered_at, listed));
        batch.findings.extend(gaps);
        batch.devices.added.extend(delta.added);
        batch.devices.removed.extend(delta.removed);
    })
    .await?;
    match read {
        Some(read) => note_read(ctx, read, listed_at).await,
        None => Ok(()),
    }
}

/// Notes the read point of connections, with the time of the last list of computers.
async fn note_read(ctx: &TeamContext, read: ConnectionsRead, listed_at: Instant) -> Result<(), RoundError> {
    let point = ReadPoint { listed_at: Some(listed_at), ..read.point };
    let change = StreamChange { plan_span: read.plan_span, ..StreamChange::default() };
    Ok(ctx.note_point(Stream::Connections, point, change).await?)
}

/// Reads the activity up to now, if the configuration includes it. Without an answer, the removal may have happened at
/// any moment since the last list.
async fn ask_activity(ctx: &TeamContext, now: Instant) {
    let Some(first) = ctx.with_state(|state| state.streams.get(&Stream::Activity).and_then(|held| held.begins)).await
    else {
        return;
    };
    if let Err(error) = read_stream(ctx, Stream::Activity, RoundStart { now, first, plan_span: None }).await {
        tracing::info!(team = %ctx.team, %error, "a computer was removed, and Annals cannot read the activity that would show when");
    }
}

/// The computers listed now; `shown` takes the whole list. `None` if the service has no such list.
async fn list(ctx: &TeamContext, shown: &mut Option<Computers>) -> Result<Option<BTreeSet<DeviceId>>, ApiError> {
    match ctx.source.devices(&ctx.team).await {
        Ok(served) => {
            ctx.service().observe(served.at);
            let ids = served.body.ids.iter().cloned().collect();
            *shown = Some(served.body);
            Ok(Some(ids))
        }
        Err(ApiError::NotFound { .. }) => {
            tracing::warn!(team = %ctx.team, "the service does not list this team's computers: only activity shows removals");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The gaps of computers that vanished from the list without an event of activity.
async fn gaps_without_activity(ctx: &TeamContext, removed: &BTreeSet<DeviceId>, began: Instant) -> Vec<Finding> {
    if removed.is_empty() {
        return Vec::new();
    }
    let uncommitted = ctx.memory.points(Stream::Connections);
    let (history, unlisted) =
        ctx.with_state(|state| (ReadHistory::of(state, &uncommitted, &ctx.settings), state.unlisted.clone())).await;
    let found_at = ctx.service().now();
    // The service gives its time in whole seconds: a later event of the same removal has an earlier date.
    let at = found_at.max(began).plus(Duration::from_secs(1));
    let last = history.point_by(Some(began.minus(Duration::from_nanos(1))));
    // Later read points have no list with the computer.
    let seen_until = history.point_by(last.map(|point| point.listed_at.unwrap_or(point.at))).map(|point| point.at);
    let gaps = removed.iter().flat_map(|device| {
        // No list showed an unlisted computer, so only the readings before its first connection are proved.
        let seen_until = unlisted.get(device).copied().unwrap_or(seen_until);
        let removal = Removal { subject: device.to_string(), at, seen_until, added_at: None };
        history.losses(&removal, found_at)
    });
    gaps.collect()
}

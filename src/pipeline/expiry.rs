//! Expiry: removes months that are older than their retention class allows.

use crate::archive::{Archive, ArchiveError, Committed, DueMonth, ExpiredRecord, TeamState, TeamWriter, active_holds};
use crate::model::{Instant, Retention};

use crate::pipeline::sessions::catch_up;
use crate::pipeline::team::TeamEdges;

/// The result of an expiry.
#[derive(Debug, Default)]
pub struct Expiration {
    /// The records of the expired months in the ledger's line.
    pub expired: Vec<ExpiredRecord>,
    /// Due months that a hold or an open window keeps.
    pub kept: Vec<DueMonth>,
}

/// The due months of a team: first the months that expire, then the months that a hold or an open window keeps. If any
/// month is due, this reads every ledger for the holds of the whole archive.
///
/// # Errors
/// When a ledger cannot be read.
pub fn due_months(
    archive: &Archive,
    state: &TeamState,
    retention: &Retention,
    now: Instant,
) -> Result<(Vec<DueMonth>, Vec<DueMonth>), ArchiveError> {
    if state.due(retention, &[], now).is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let holds = active_holds(state, &archive.archive_holds()?);
    Ok(state.due(retention, &holds, now).into_iter().partition(|month| month.kept_by.is_none()))
}

/// Removes the due months without a hold or open window, in one ledger line. Before and afterwards, makes the sessions that
/// an interrupted run left, or that lost part of their events. `at` is the time of the policy, `now` the machine's clock.
///
/// # Errors
/// When the archive cannot be read or written.
pub fn expire(
    archive: &Archive,
    writer: &mut TeamWriter,
    retention: &Retention,
    (at, now): (Instant, Instant),
) -> Result<Expiration, ArchiveError> {
    // Months wait for their sessions.
    while let Committed::Committed { .. } = catch_up(writer, at, now)? {}
    let (due, kept) = due_months(archive, writer.state(), retention, at)?;
    let expired = writer.expire(&due, at, now)?;
    while let Committed::Committed { .. } = catch_up(writer, at, now)? {}
    Ok(Expiration { expired, kept })
}

/// Expires months by the daemon's schedule. The earlier clock counts, so one clock in the future expires nothing early.
pub async fn expire_on_schedule(edges: &TeamEdges) -> Result<(), ArchiveError> {
    let Some(settings) = &edges.settings.retention else { return Ok(()) };
    let now = edges.clock.now();
    let at = now.min(edges.service().now());
    let classes = settings.classes.of(&edges.team).clone();
    if classes.is_empty() || !edges.memory.is_expiry_due(&settings.schedule, at) {
        return Ok(());
    }
    // The ledgers of other teams have the holds of the whole archive.
    let archive = edges.archive.clone();
    let done = edges.with_writer(move |writer| expire(&archive, writer, &classes, (at, now))).await?;
    if !done.expired.is_empty() {
        let rows: u64 = done.expired.iter().map(|record| record.rows).sum();
        tracing::info!(team = %edges.team, months = done.expired.len(), rows, "Annals removed rows that are older than their retention class");
    }
    let text = |of: &DueMonth| Some(format!("{} of {}: {}", of.dataset, of.month.month(), of.kept_text()?));
    let kept: Vec<String> = done.kept.iter().filter_map(text).collect();
    if !kept.is_empty() {
        tracing::info!(team = %edges.team, kept = kept.join("; "), "Annals keeps due rows for the named reasons");
    }
    edges.memory.note_held_back(kept);
    Ok(())
}

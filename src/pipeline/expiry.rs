//! Expiry: removes months that are older than their retention class allows.

use crate::archive::{Archive, ArchiveError, DueMonth, ExpiredRecord, TeamState, TeamWriter, active_holds};
use crate::model::{Instant, Retention};

use super::sessions::catch_up::Chunk;
use super::sessions::update::are_stale;
use super::team::edges::TeamEdges;

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

/// Removes the due months without a hold or open window, in one ledger line. Then makes the sessions again that lost
/// part of their events.
///
/// # Errors
/// When the archive cannot be read or written.
pub fn expire(
    archive: &Archive,
    writer: &mut TeamWriter,
    retention: &Retention,
    now: Instant,
) -> Result<Expiration, ArchiveError> {
    let (due, kept) = due_months(archive, writer.state(), retention, now)?;
    let expired = writer.expire(&due, now)?;
    while !expired.is_empty() && are_stale(writer.state()) {
        let _ = Chunk::next(writer.state()).commit(writer, now, now)?;
    }
    Ok(Expiration { expired, kept })
}

/// Expires months by the daemon's schedule.
///
/// # Errors
/// As [`expire`].
pub async fn expire_on_schedule(edges: &TeamEdges) -> Result<(), ArchiveError> {
    let Some(settings) = edges.settings.retention.clone() else { return Ok(()) };
    let now = edges.clock.now();
    if settings.classes.of(&edges.team).is_empty() || !edges.memory.is_expiry_due(&settings.schedule, now) {
        return Ok(());
    }
    let team = edges.team.clone();
    let done =
        edges.with_writer(move |writer| expire(&settings.archive, writer, settings.classes.of(&team), now)).await?;
    let team = &edges.team;
    if !done.expired.is_empty() {
        let rows: u64 = done.expired.iter().map(|record| record.rows).sum();
        tracing::info!(%team, months = done.expired.len(), rows, "Annals removed rows that are older than their retention class");
    }
    let kept = done.kept.iter().filter_map(|month| Some((month, month.kept_text()?)));
    let kept: Vec<String> =
        kept.map(|(month, why)| format!("{} of {}: {why}", month.dataset, month.month.month())).collect();
    if !kept.is_empty() {
        tracing::info!(%team, kept = kept.join("; "), "Annals keeps due rows for the named reasons");
    }
    edges.memory.note_held_back(kept);
    Ok(())
}

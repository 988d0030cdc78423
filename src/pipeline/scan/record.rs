//! What a look leaves in the archive: changed rows, and a record of each part that was looked at. The ledger says when a
//! part was looked at last, and so when it is due again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::ApiError;
use crate::archive::{ArchiveError, Draft, Finding, FindingKind, InventoryRead, TeamState, TeamWriter};
use crate::inventory::{Malformed, Snapshot, Standing};
use crate::model::{Instant, InventoryPart, InventoryRow};
use crate::pipeline::error::RoundError;

/// A look this old is made again: a day, less what a day's run may begin earlier or end later than the one before.
pub const SCAN_AGE: Duration = Duration::from_secs(23 * 3_600);
/// Undocumented fields that are announced of one team.
const UNKNOWN_FIELDS_MAX: usize = 200;

/// What the looks of a round came to.
#[derive(Debug, Default)]
pub struct ScanRound {
    /// Rows that tell of something new, changed or gone.
    pub changes: u64,
    /// What could not be looked at; the next round tries again.
    pub failures: Vec<RoundError>,
}

/// Whether a part was never looked at, or too long ago. A look that is dated far into the future was made by a clock that
/// nobody believes any more.
pub fn is_old(state: &TeamState, part: InventoryPart, now: Instant) -> bool {
    let is_far = |at: Instant| at.since(now).max(now.since(at)) >= SCAN_AGE;
    state.last_scan(part).is_none_or(|scan| is_far(scan.read_at))
}

pub fn unexpected(what: &str, malformed: &Malformed) -> ApiError {
    ApiError::Unexpected { what: what.to_owned(), detail: malformed.to_string() }
}

/// What the archive holds of parts.
///
/// # Errors
/// When a file cannot be read.
pub fn standings(
    writer: &TeamWriter,
    parts: impl IntoIterator<Item = InventoryPart>,
) -> Result<BTreeMap<InventoryPart, Standing>, ArchiveError> {
    parts.into_iter().map(|part| Ok((part, Standing::of(writer.inventory(part)?)))).collect()
}

/// The service's time, or the first microsecond after all that is held, should a clock have been set back.
pub fn next_moment<'a>(
    state: &TeamState,
    parts: impl Iterator<Item = InventoryPart>,
    standings: impl Iterator<Item = &'a Standing>,
    now: Instant,
) -> Instant {
    let scans = parts.filter_map(|part| state.last_scan(part)).map(|scan| scan.read_at.micros());
    let held = scans.chain(standings.filter_map(Standing::seen_to)).max();
    let micros = held.map_or(now.micros(), |held| now.micros().max(held.saturating_add(1)));
    Instant::from_nanos(micros.saturating_mul(1_000))
}

/// The record of a look; `entities`: none where the token may not see the part.
pub fn scan_record(part: InventoryPart, read_at: Instant, entities: Option<usize>) -> InventoryRead {
    InventoryRead { part, read_at, visible: entities.is_some(), entities: entities.unwrap_or(0) as u64 }
}

pub fn changes_in(draft: &Draft) -> u64 {
    let rows = draft.inventory.iter().flat_map(|(_, rows)| rows);
    rows.filter(|row: &&InventoryRow| !row.repeats).count() as u64
}

/// Fields that are met for the first time.
pub fn unknown_fields(state: &TeamState, snapshot: &Snapshot, found_at: Instant) -> Vec<Finding> {
    let known: BTreeSet<&str> = state
        .findings
        .iter()
        .filter(|(_, finding)| finding.kind == FindingKind::UnknownField)
        .map(|(_, finding)| finding.subject.as_str())
        .collect();
    let reason = "not documented, or of another kind than documented: counted, not kept";
    let finding = |(path, kind, count): (&str, &str, u64)| {
        let subject = format!("{path}: {kind}");
        Finding { count, ..Finding::new(None, FindingKind::UnknownField, &subject, reason, found_at) }
    };
    let new = snapshot.unknown.counts().map(finding).filter(|finding| !known.contains(finding.subject.as_str()));
    new.take(UNKNOWN_FIELDS_MAX.saturating_sub(known.len())).collect()
}

//! The records of a scan: changed rows, and the time of the scan of each part, from which the next scan is due.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::ApiError;
use crate::archive::{ArchiveError, Draft, Finding, FindingKind, InventoryRead, TeamState, TeamWriter};
use crate::inventory::{ArchivedPart, Malformed, ShownParts};
use crate::model::{Instant, InventoryPart, InventoryRow};
use crate::pipeline::error::RoundError;

/// The age at which a scan is due again: a day, less the jitter of the daily run.
pub const SCAN_AGE: Duration = Duration::from_secs(23 * 3_600);
/// The most undocumented fields that a team reports.
const UNKNOWN_FIELDS_MAX: usize = 200;

/// The result of a round's scan.
#[derive(Debug, Default)]
pub struct ScanRound {
    /// Rows of new, changed or vanished entries.
    pub changes: u64,
    /// Failures. The next round tries again.
    pub failures: Vec<RoundError>,
}

/// Whether a part was never scanned, or not for too long. A scan dated far into the future comes from a wrong clock.
pub fn is_old(state: &TeamState, part: InventoryPart, now: Instant) -> bool {
    let is_far = |at: Instant| at.since(now).max(now.since(at)) >= SCAN_AGE;
    state.last_scan(part).is_none_or(|scan| is_far(scan.read_at))
}

pub fn unexpected(what: &str, malformed: &Malformed) -> ApiError {
    ApiError::Unexpected { what: what.to_owned(), detail: malformed.to_string() }
}

/// The archived state of parts.
///
/// # Errors
/// When a file cannot be read.
pub fn archived_parts(
    writer: &TeamWriter,
    parts: impl IntoIterator<Item = InventoryPart>,
) -> Result<BTreeMap<InventoryPart, ArchivedPart>, ArchiveError> {
    parts.into_iter().map(|part| Ok((part, ArchivedPart::of(writer.rows().inventory(part)?)))).collect()
}

/// The service's time, or the microsecond after the newest archived row, if a clock was set back.
pub fn next_moment<'a>(
    state: &TeamState,
    parts: impl Iterator<Item = InventoryPart>,
    archived: impl Iterator<Item = &'a ArchivedPart>,
    now: Instant,
) -> Instant {
    let scans = parts.filter_map(|part| state.last_scan(part)).map(|scan| scan.read_at.micros());
    let held = scans.chain(archived.filter_map(ArchivedPart::seen_to)).max();
    let micros = held.map_or(now.micros(), |held| now.micros().max(held.saturating_add(1)));
    Instant::from_micros(micros)
}

/// The record of a scan. `entities`: `None` if the token may not see the part.
pub fn scan_record(part: InventoryPart, read_at: Instant, entities: Option<usize>) -> InventoryRead {
    InventoryRead { part, read_at, visible: entities.is_some(), entities: entities.unwrap_or(0) as u64 }
}

pub fn changes_in(draft: &Draft) -> u64 {
    let rows = draft.inventory.iter().flat_map(|(_, rows)| rows);
    rows.filter(|row: &&InventoryRow| !row.repeats).count() as u64
}

/// Findings of new undocumented fields.
pub fn unknown_fields(state: &TeamState, snapshot: &ShownParts, found_at: Instant) -> Vec<Finding> {
    let known: BTreeSet<&str> = state
        .findings
        .iter()
        .filter(|(_, finding)| finding.kind == FindingKind::UnknownField)
        .map(|(_, finding)| finding.subject.as_str())
        .collect();
    let reason = "the field is not documented, or has another type than documented: Annals counts it, and does not keep its value";
    let finding = |(path, kind, count): (&str, &str, u64)| {
        let subject = format!("{path}: {kind}");
        Finding { count, ..Finding::new(None, FindingKind::UnknownField, &subject, reason, found_at) }
    };
    let new = snapshot.unknown.counts().map(finding).filter(|finding| !known.contains(finding.subject.as_str()));
    new.take(UNKNOWN_FIELDS_MAX.saturating_sub(known.len())).collect()
}

//! The records of a scan: changed rows, and the time of the scan of each part, from which the next scan is due.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::ApiError;
use crate::archive::{ArchiveError, Draft, Finding, FindingKind, InventoryRead, TeamState, TeamWriter};
use crate::inventory::{ArchivedPart, Malformed, Scope, ShownParts};
use crate::model::{Instant, InventoryPart};
use crate::pipeline::error::RoundError;
use crate::pipeline::team::TeamContext;

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
pub fn archived_parts(
    writer: &TeamWriter,
    parts: impl IntoIterator<Item = InventoryPart>,
) -> Result<BTreeMap<InventoryPart, ArchivedPart>, ArchiveError> {
    parts.into_iter().map(|part| Ok((part, ArchivedPart::of(writer.rows().inventory(part)?)))).collect()
}

/// The content of one commit of a scan.
#[derive(Default)]
pub struct Scanned {
    /// The answers, and the user of each. `None`: the answer shows the whole of its parts.
    pub answers: Vec<(Option<String>, ShownParts)>,
    /// The parts that the answers show.
    pub shown: BTreeSet<InventoryPart>,
    /// The parts that the token may not see.
    pub hidden: BTreeSet<InventoryPart>,
    /// The scan of the shown parts is complete.
    pub is_complete: bool,
}

impl Scanned {
    /// Commits the answers and the records of complete scans. Returns the number of new, changed or vanished entries. `now`
    /// is the service's clock.
    pub async fn commit(self, ctx: &TeamContext, now: Instant) -> Result<u64, ArchiveError> {
        if self.answers.is_empty() && self.hidden.is_empty() && !self.is_complete {
            return Ok(0);
        }
        let at = ctx.clock.now();
        ctx.with_writer(move |writer| {
            let draft = self.draft(writer, now)?;
            let rows = draft.inventory.iter().flat_map(|(_, rows)| rows);
            let changes = rows.filter(|row| !row.repeats).count() as u64;
            let _done = writer.commit(draft, at)?;
            Ok(changes)
        })
        .await
    }

    fn draft(self, writer: &TeamWriter, now: Instant) -> Result<Draft, ArchiveError> {
        let mut archived = archived_parts(writer, self.shown.iter().copied())?;
        let is_new = |user: &String| {
            let held = archived.get(&InventoryPart::SignIn);
            held.is_some_and(|held| held.row_at(std::slice::from_ref(user)).is_none())
        };
        // A person who comes back after months: the newest rows do not tell which tokens are gone.
        if self.answers.iter().filter_map(|(user, _)| user.as_ref()).any(is_new) {
            let tokens = writer.rows().whole_inventory(InventoryPart::Tokens)?;
            archived.insert(InventoryPart::Tokens, ArchivedPart::of(tokens));
        }
        let seen_at = next_moment(writer.state(), archived.values(), now);
        let mut draft = Draft::default();
        for (part, archived) in &mut archived {
            let mut rows = Vec::new();
            for (user, snapshot) in &self.answers {
                if let Some(entries) = snapshot.parts.get(part) {
                    let scope = user.as_ref().map_or(Scope::Whole, |user| Scope::User(user));
                    rows.extend(archived.changes(*part, scope, entries, seen_at.micros()));
                }
            }
            archived.follow(rows.iter().cloned());
            draft.inventory.extend((!rows.is_empty()).then_some((*part, rows)));
            let entities = archived.len() as u64;
            let read = InventoryRead { part: *part, read_at: seen_at, visible: true, entities };
            draft.body.inventory.extend(self.is_complete.then_some(read));
        }
        let hidden = |part| InventoryRead { part, read_at: seen_at, visible: false, entities: 0 };
        draft.body.inventory.extend(self.hidden.into_iter().map(hidden));
        let unknown = self.answers.into_iter().map(|(_, parts)| ShownParts { parts: BTreeMap::new(), ..parts });
        let unknown = unknown.fold(ShownParts::default(), ShownParts::with);
        draft.body.findings = unknown_fields(writer.state(), &unknown, seen_at);
        Ok(draft)
    }
}

/// The service's time, or the microsecond after the newest scan or row. The service's clock can seem to go back, because its
/// `Date` has whole seconds. A clock can also be set back.
fn next_moment<'a>(state: &TeamState, archived: impl Iterator<Item = &'a ArchivedPart>, now: Instant) -> Instant {
    let scans = InventoryPart::ALL.iter().filter_map(|part| state.last_scan(*part)).map(|scan| scan.read_at.micros());
    let held = scans.chain(archived.filter_map(ArchivedPart::seen_to)).max();
    let micros = held.map_or(now.micros(), |held| now.micros().max(held.saturating_add(1)));
    Instant::from_micros(micros)
}

/// Findings of new undocumented fields.
fn unknown_fields(state: &TeamState, snapshot: &ShownParts, found_at: Instant) -> Vec<Finding> {
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

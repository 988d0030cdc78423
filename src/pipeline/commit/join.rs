//! What a reading brings, joined with what the archive holds: the rows that are missing. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::archive::{EventColumns, Salts, StoredEvent, StoredReject, TeamState};
use crate::collect::Counted;
use crate::model::{Digest, DigestMap, EventId, EventRow, Instant, RejectRow, Stream, TeamId};
use crate::normalize::normalize;
use crate::planted::{self, Bug};

use crate::pipeline::commit::piece::Piece;

/// What the archive holds of the place that events are joined into.
#[derive(Debug, Default)]
pub struct Held {
    occurrences: DigestMap<u32>,
    revisions: HashMap<EventId, u32, ahash::RandomState>,
}

impl Held {
    pub fn new(stored: &[StoredEvent]) -> Self {
        let mut held = Self::default();
        for event in stored {
            *held.occurrences.entry(event.digest).or_default() += 1;
            let revision = held.revisions.entry(event.event_id.clone()).or_default();
            *revision = (*revision).max(event.revision);
        }
        held
    }

    pub fn of_rejects(stored: &[StoredReject]) -> Self {
        let mut held = Self::default();
        for reject in stored {
            *held.occurrences.entry(reject.digest).or_default() += 1;
        }
        held
    }

    /// Makes room for so many more events at once.
    pub fn reserve(&mut self, events: usize) {
        self.occurrences.reserve(events);
        self.revisions.reserve(events);
    }

    pub fn is_empty(&self) -> bool {
        self.occurrences.is_empty()
    }

    /// How often an event of this content is held.
    pub fn occurrences(&self, digest: &Digest) -> u32 {
        self.occurrences.get(digest).copied().unwrap_or(0)
    }
}

/// The rows that a reading adds.
#[derive(Debug, Default)]
pub struct Added {
    pub rows: Vec<EventRow>,
    /// More rows.
    pub columns: Vec<EventColumns>,
    pub rejects: Vec<RejectRow>,
    /// Ids whose content differs from what is archived: each is a new revision.
    pub changed: Vec<(EventId, Instant)>,
    pub redacted: u64,
    pub types: BTreeSet<String>,
}

impl Added {
    pub fn count(&self) -> usize {
        self.rows.len() + self.columns.iter().map(EventColumns::count).sum::<usize>()
    }

    /// The times of the first row and of the last.
    pub fn times(&self) -> Option<(Instant, Instant)> {
        let times =
            self.rows.iter().map(|row| (row.time, row.time)).chain(self.columns.iter().map(EventColumns::times));
        times.reduce(|all, some| (all.0.min(some.0), all.1.max(some.1)))
    }
}

/// Whose events are joined.
#[derive(Debug, Clone, Copy)]
pub struct Joining<'a> {
    pub team: &'a TeamId,
    pub stream: Stream,
    /// The service's clock.
    pub seen_at: Instant,
}

impl<'a> Joining<'a> {
    /// Of a team whose archive stands so.
    pub fn of(state: &'a TeamState, stream: Stream, seen_at: Instant) -> Self {
        Self { team: &state.team_id, stream, seen_at }
    }

    /// Joins all that was read of a place. Columns that were made before are the rows, where every event is new and the only one
    /// of its id: then there is nothing to be found out row by row.
    pub fn pieces(self, pieces: &mut [Piece], held: &mut Held, rejects: &mut Held, salts: &Salts) -> Added {
        let mut added = Added::default();
        if pieces.iter().any(|piece| piece.columns().is_some()) {
            pieces.iter_mut().for_each(|piece| piece.make_columns(salts, self.stream, self.seen_at));
        }
        if !are_new(pieces, held, rejects) {
            let count = pieces.iter().map(|piece| piece.events().len()).sum();
            added.rows.reserve_exact(count);
            held.reserve(count);
            pieces.iter_mut().for_each(|piece| self.events(piece.put_back(), held, rejects, &mut added));
            return added;
        }
        for piece in pieces {
            added.redacted += piece.events().iter().map(|held| u64::from(held.event.redacted)).sum::<u64>();
            let Some((columns, others)) = piece.take_columns() else { continue };
            added.redacted -= others.iter().map(|held| u64::from(held.event.redacted)).sum::<u64>();
            self.events(&others, held, rejects, &mut added);
            added.types.extend(columns.types().iter().cloned());
            added.columns.push(columns);
        }
        added
    }

    /// Joins `events` into `held`, which learns them.
    pub fn events(self, events: &[Counted], held: &mut Held, rejects: &mut Held, added: &mut Added) {
        for Counted { event, count } in events {
            let occurrences = held.occurrences.entry(event.digest).or_default();
            // Each is a row or in quarantine: of twins, an earlier program may have quarantined the first.
            let known = *occurrences + rejects.occurrences(&event.digest);
            if known >= *count {
                continue;
            }
            // An id of our own making holds the content's hash: it has one revision.
            let mut held_revision = event.id.as_ref().map(|id| held.revisions.entry(id.clone()).or_default());
            for occurrence in known + 1..=*count {
                let revision = held_revision.as_ref().map_or(0, |held| **held) + 1;
                if revision > 1 && planted::is(Bug::RevisionsDropped) {
                    continue;
                }
                added.redacted += u64::from(event.redacted);
                match normalize(self.team, self.stream, event, occurrence, revision, self.seen_at) {
                    Ok(row) => {
                        if revision > 1 {
                            added.changed.push((row.event_id.clone(), row.time));
                        }
                        *occurrences += 1;
                        if let Some(held) = &mut held_revision {
                            **held = revision;
                        }
                        if !added.types.contains(row.event_type.as_str()) {
                            added.types.insert(row.event_type.to_string());
                        }
                        added.rows.push(row);
                    }
                    Err(reject) => {
                        *rejects.occurrences.entry(event.digest).or_default() += 1;
                        added.rejects.push(*reject);
                    }
                }
            }
        }
    }
}

/// Whether all that was read are columns, and none of it is known or stands there twice.
fn are_new(pieces: &[Piece], held: &Held, rejects: &Held) -> bool {
    let Some(columns) = pieces.iter().map(Piece::columns).collect::<Option<Vec<_>>>() else { return false };
    let is_known = |Counted { event, .. }: &Counted| {
        held.occurrences(&event.digest) + rejects.occurrences(&event.digest) > 0
            || event.id.as_ref().is_some_and(|id| held.revisions.contains_key(id))
    };
    let holds_any = !held.is_empty() || !rejects.is_empty();
    if holds_any && pieces.iter().flat_map(Piece::events).any(is_known) {
        return false;
    }
    let count = columns.iter().map(|some| some.count()).sum();
    let mut ids: HashSet<&str, ahash::RandomState> =
        HashSet::with_capacity_and_hasher(count, ahash::RandomState::new());
    columns.iter().flat_map(|some| some.rows()).all(|row| ids.insert(row.event_id))
}

/// How many archived events of a range that was read whole are no longer served.
pub fn no_longer_served<'f>(stored: &[StoredEvent], served: impl IntoIterator<Item = &'f Counted>) -> u64 {
    if stored.is_empty() {
        return 0;
    }
    let mut left: DigestMap<u32> = DigestMap::default();
    let mut ids: HashSet<&EventId> = HashSet::new();
    for Counted { event, count } in served {
        *left.entry(event.digest).or_default() += count;
        ids.extend(&event.id);
    }
    let mut gone = 0;
    for event in stored {
        match left.get_mut(&event.digest) {
            Some(count) if *count > 0 => *count -= 1,
            _ if ids.contains(&event.event_id) => {}
            _ => gone += 1,
        }
    }
    gone
}

#[cfg(test)]
mod tests;

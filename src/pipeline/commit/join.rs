//! Joins read events with the archived events, and returns the rows that the archive lacks. Pure.

use std::collections::{HashMap, HashSet};
use std::iter::repeat_n;

use rayon::prelude::*;

use crate::archive::{ArchiveError, Salts, StoredEvent, StoredReject, TeamState};
use crate::collect::CountedEvent;
use crate::model::{Digest, DigestMap, EventId, EventRow, Instant, RejectRow, Stream};
use crate::normalize::{normalize, parse};
use crate::pipeline::commit::change::RowCounts;
use crate::planted::{self, Bug};

/// Fewer events do not justify a thread.
const EVENTS_A_THREAD_MIN: usize = 500;

/// The archived events of a window, or of quarantine.
#[derive(Debug, Default)]
pub struct ArchivedEvents {
    occurrences: DigestMap<u32>,
    revisions: HashMap<EventId, u32, ahash::RandomState>,
    /// Events without their served text, by the keyed digest of that text.
    erased: DigestMap<u32>,
}

impl ArchivedEvents {
    pub fn new(stored: &[StoredEvent]) -> Self {
        let mut archived = Self::default();
        for event in stored {
            archived.add(event.digest, event.original);
            let revision = archived.revisions.entry(event.event_id.clone()).or_default();
            *revision = (*revision).max(event.revision);
        }
        archived
    }

    pub fn of_rejects(stored: &[StoredReject]) -> Self {
        let mut archived = Self::default();
        stored.iter().for_each(|reject| archived.add(reject.digest, reject.original));
        archived
    }

    fn add(&mut self, digest: Digest, original: Option<Digest>) {
        *self.occurrences.entry(digest).or_default() += 1;
        if let Some(original) = original {
            *self.erased.entry(original).or_default() += 1;
        }
    }

    /// Finds the erased events among the served ones, and counts them by their own digest.
    ///
    /// # Errors
    /// When the salt of the keyed digests is lost.
    pub fn recognise(&mut self, served: &[CountedEvent], salts: &Salts) -> Result<(), ArchiveError> {
        if self.erased.is_empty() {
            return Ok(());
        }
        let known_as = salts.originals()?;
        for CountedEvent { event, .. } in served {
            if let Some(count) = self.erased.remove(&known_as(&event.digest)) {
                *self.occurrences.entry(event.digest).or_default() += count;
            }
        }
        Ok(())
    }

    /// How many archived events have this content.
    pub fn occurrences(&self, digest: &Digest) -> u32 {
        self.occurrences.get(digest).copied().unwrap_or(0)
    }
}

/// Handles erased events, which the archive holds under another text. If the service still serves such an event, this
/// sets its digest to the digest of the served text.
///
/// # Errors
/// When the salt of the keyed digests is lost.
pub fn recognise(stored: &mut [StoredEvent], served: &[CountedEvent], salts: &Salts) -> Result<(), ArchiveError> {
    if stored.iter().all(|event| event.original.is_none()) {
        return Ok(());
    }
    let known_as = salts.originals()?;
    let served = served.iter().map(|CountedEvent { event, .. }| event.digest);
    let digests: DigestMap<Digest> = served.map(|digest| (known_as(&digest), digest)).collect();
    for event in stored {
        if let Some(digest) = event.original.and_then(|original| digests.get(&original)) {
            event.digest = *digest;
        }
    }
    Ok(())
}

/// The rows that the archive lacks.
#[derive(Debug, Default)]
pub struct NewRows {
    pub rows: Vec<EventRow>,
    pub rejects: Vec<RejectRow>,
    pub redacted: u64,
    pub expired: u64,
}

impl NewRows {
    pub fn counts(&self) -> RowCounts {
        RowCounts { all: self.rows.len() as u64, first_seen: self.first_seen().count() as u64 }
    }

    /// The times of the rows that are no revisions.
    pub fn first_seen(&self) -> impl Iterator<Item = Instant> {
        self.rows.iter().filter(|row| row.revision == 1).map(|row| row.time)
    }
}

/// Adds to `added` the rows of `events` that `archived` lacks, and adds them to it. `seen_at` is the service's clock.
pub fn join(
    (state, stream, seen_at): (&TeamState, Stream, Instant),
    events: &[CountedEvent],
    archived: &mut ArchivedEvents,
    rejects: &mut ArchivedEvents,
    added: &mut NewRows,
) {
    // Each event is either a row or in quarantine.
    let is_new = |read: &CountedEvent| {
        archived.occurrences(&read.event.digest) + rejects.occurrences(&read.event.digest) < read.count
    };
    let parse = |read: &CountedEvent| is_new(read).then(|| parse(stream, &read.event));
    let parsed: Vec<_> = events.par_iter().with_min_len(EVENTS_A_THREAD_MIN).map(parse).collect();
    let new = parsed.iter().flatten().count();
    added.rows.reserve(new);
    archived.occurrences.reserve(new);
    archived.revisions.reserve(new);
    for (CountedEvent { event, count }, parsed) in events.iter().zip(parsed) {
        let Some(parsed) = parsed else { continue };
        let occurrences = archived.occurrences.entry(event.digest).or_default();
        let known = *occurrences + rejects.occurrences(&event.digest);
        let new = count.saturating_sub(known) as usize;
        // A generated id contains the hash of the content, so it has one revision.
        let mut archived_revision = event.id.as_ref().map(|id| archived.revisions.entry(id.clone()).or_default());
        for (occurrence, parsed) in (known + 1..=*count).zip(repeat_n(parsed, new)) {
            let revision = archived_revision.as_ref().map_or(0, |known| **known) + 1;
            if revision > 1 && planted::is(Bug::RevisionsDropped) {
                continue;
            }
            added.redacted += u64::from(event.redacted);
            match normalize(&state.team_id, stream, (event, parsed), occurrence, revision, seen_at) {
                Ok(row) => {
                    *occurrences += 1;
                    if let Some(known) = &mut archived_revision {
                        **known = revision;
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

/// How many archived events of a completely read range are no longer served.
pub fn no_longer_served<'f>(stored: &[StoredEvent], served: impl IntoIterator<Item = &'f CountedEvent>) -> u64 {
    if stored.is_empty() {
        return 0;
    }
    let mut left: DigestMap<u32> = DigestMap::default();
    let mut ids: HashSet<&EventId> = HashSet::new();
    for CountedEvent { event, count } in served {
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

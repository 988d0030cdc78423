//! What a reading brings, joined with what the archive holds: the rows that are missing. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::archive::{StoredEvent, StoredReject};
use crate::collect::Counted;
use crate::model::{Digest, DigestMap, EventId, EventRow, Instant, RejectRow, Stream, TeamId};
use crate::normalize::normalize;
use crate::planted::{self, Bug};

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

    /// How often an event of this content is held.
    pub fn occurrences(&self, digest: &Digest) -> u32 {
        self.occurrences.get(digest).copied().unwrap_or(0)
    }
}

/// An event that waits to be joined.
#[derive(Debug)]
pub struct Fetched {
    pub counted: Counted,
    /// What it becomes, should it be the first of its id and content.
    row: Option<EventRow>,
}

impl From<Counted> for Fetched {
    fn from(counted: Counted) -> Self {
        Self { counted, row: None }
    }
}

impl Fetched {
    /// The event with its row, where that is worth making before it is known to be new.
    pub fn with_row(counted: Counted, team: &TeamId, stream: Stream) -> Self {
        let row = normalize(team, stream, &counted.event, 1, 1, Instant::EARLIEST).ok();
        Self { counted, row }
    }

    pub fn at(&self) -> Option<Instant> {
        self.counted.event.at()
    }
}

/// The rows that a reading adds.
#[derive(Debug, Default)]
pub struct Added {
    pub rows: Vec<EventRow>,
    pub rejects: Vec<RejectRow>,
    /// Ids whose content differs from what is archived: each is a new revision.
    pub changed: Vec<(EventId, Instant)>,
    pub redacted: u64,
    pub types: BTreeSet<String>,
}

/// Joins `events` of one stream into `held`, which learns them. Rows that were made before are taken.
pub fn join(
    team: &TeamId,
    stream: Stream,
    events: &mut [Fetched],
    held: &mut Held,
    rejects: &mut Held,
    seen_at: Instant,
    added: &mut Added,
) {
    for Fetched { counted: Counted { event, count }, row } in events {
        let mut ahead = row.take().map(|row| EventRow { first_seen_at: seen_at, ..row });
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
            let is_first = (occurrence, revision) == (1, 1);
            let read = ahead.take().filter(|_| is_first).map(Ok);
            match read.unwrap_or_else(|| normalize(team, stream, event, occurrence, revision, seen_at)) {
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

/// How many archived events of a range that was read whole are no longer served.
pub fn no_longer_served<'f>(stored: &[StoredEvent], served: impl IntoIterator<Item = &'f Fetched>) -> u64 {
    if stored.is_empty() {
        return 0;
    }
    let mut left: DigestMap<u32> = DigestMap::default();
    let mut ids: HashSet<&EventId> = HashSet::new();
    for Fetched { counted: Counted { event, count }, .. } in served {
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
mod tests {
    use super::*;
    use crate::model::{RawEvent, ServedTime};

    fn at() -> Instant {
        Instant::from_seconds(1_700_000_000)
    }

    fn connection(id: &str, host: &str) -> Counted {
        let text = format!(
            r#"{{"id":"{id}","timestamp":1700000000000,"computerHostName":"{host}","connectionClosedEvent":{{}}}}"#
        );
        let event = RawEvent::new(text.into(), false, Some(EventId::from(id)), ServedTime::At(at()));
        Counted { event, count: 1 }
    }

    fn activity(name: &str, count: u32) -> Counted {
        let text = format!(r#"{{"header":{{"eventTimestampUnixNano":1700000000000000000}},"{name}":{{}}}}"#);
        Counted { event: RawEvent::new(text.into(), false, None, ServedTime::At(at())), count }
    }

    fn fetched(events: &[Counted]) -> Vec<Fetched> {
        events.iter().cloned().map(Fetched::from).collect()
    }

    fn add(stream: Stream, events: &[Counted], held: &mut Held) -> Added {
        let mut added = Added::default();
        join(&TeamId::from("t"), stream, &mut fetched(events), held, &mut Held::default(), at(), &mut added);
        added
    }

    #[test]
    fn twins_get_occurrence_numbers_and_a_second_reading_adds_nothing() {
        let mut held = Held::default();
        let first = add(Stream::Activity, &[activity("aEvent", 2)], &mut held);
        let ids: Vec<_> = first.rows.iter().map(|row| row.event_id.as_str().rsplit('-').next().unwrap()).collect();
        assert_eq!(ids, ["1", "2"]);
        assert!(add(Stream::Activity, &[activity("aEvent", 2)], &mut held).rows.is_empty());
        assert_eq!(add(Stream::Activity, &[activity("aEvent", 3)], &mut held).rows.len(), 1);
    }

    #[test]
    fn the_same_id_with_other_content_is_a_new_revision() {
        let mut held = Held::default();
        assert_eq!(add(Stream::Connections, &[connection("e1", "a")], &mut held).rows[0].revision, 1);
        assert!(add(Stream::Connections, &[connection("e1", "a")], &mut held).rows.is_empty());
        let changed = add(Stream::Connections, &[connection("e1", "b")], &mut held);
        assert_eq!((changed.rows[0].revision, changed.changed.len()), (2, 1));
    }

    #[test]
    fn what_cannot_be_a_row_is_kept_once() {
        let bad = Counted {
            event: RawEvent::new(
                "{}".to_owned().into(),
                false,
                None,
                ServedTime::Unusable("time_missing: none".into()),
            ),
            count: 1,
        };
        let (mut held, mut rejects) = (Held::default(), Held::default());
        for expected in [1, 0] {
            let mut added = Added::default();
            let team = TeamId::from("t");
            let mut bad = fetched(std::slice::from_ref(&bad));
            join(&team, Stream::Activity, &mut bad, &mut held, &mut rejects, at(), &mut added);
            assert_eq!((added.rows.len(), added.rejects.len()), (0, expected));
        }
    }

    #[test]
    fn twins_of_which_an_earlier_program_quarantined_one_are_rows_but_for_that_one() {
        let twins = [activity("aEvent", 3)];
        let stored = StoredReject {
            event_id: "old".into(),
            digest: twins[0].event.digest,
            time: None,
            reason: String::new(),
            first_seen_at: at(),
        };
        let (mut held, mut rejects) = (Held::default(), Held::of_rejects(&[stored]));
        for expected in [2, 0, 0] {
            let mut added = Added::default();
            let team = TeamId::from("t");
            join(&team, Stream::Activity, &mut fetched(&twins), &mut held, &mut rejects, at(), &mut added);
            assert_eq!((added.rows.len(), added.rejects.len()), (expected, 0));
        }
    }

    #[test]
    fn events_with_rows_made_before_become_what_they_become_without() {
        let unusable = |n: u32| {
            let time = ServedTime::Unusable("time_missing: none".into());
            Counted { event: RawEvent::new(format!("{{\"n\":{n}}}").into(), false, None, time), count: 1 }
        };
        let of = |n: u32| match n % 10 {
            0 => unusable(n / 20),
            1 => connection(&format!("e{}", n - 1), "edited"),
            2 => connection(&format!("e{}", n - 1), "edited"),
            3 => connection(&format!("e{}", n / 20), "again"),
            _ => connection(&format!("e{n}"), "x"),
        };
        let connections: Vec<Counted> = (0..5_000).map(of).collect();
        let activities: Vec<Counted> =
            (0..5_000).map(|n| activity(&format!("n{}Event", n % 3_000), 1 + n % 3)).collect();
        for (stream, events) in [(Stream::Connections, connections), (Stream::Activity, activities)] {
            let (mut held, mut rejects) = (Held::default(), Held::default());
            let team = TeamId::from("t");
            let mut with = Added::default();
            let mut rows: Vec<Fetched> =
                events.iter().map(|event| Fetched::with_row(event.clone(), &team, stream)).collect();
            join(&team, stream, &mut rows, &mut held, &mut rejects, at(), &mut with);
            let (mut held, mut rejects) = (Held::default(), Held::default());
            let mut without = Added::default();
            join(&team, stream, &mut fetched(&events), &mut held, &mut rejects, at(), &mut without);
            assert!(!with.rows.is_empty() && with.rows == without.rows, "{stream}");
            assert_eq!((with.rejects, with.changed), (without.rejects, without.changed), "{stream}");
            assert_eq!((with.redacted, with.types), (without.redacted, without.types), "{stream}");
        }
    }

    #[test]
    fn what_vanished_upstream_is_counted_and_an_edit_is_not() {
        let stored = |event: &Counted| StoredEvent {
            event_id: event.event.id.clone().unwrap(),
            digest: event.event.digest,
            time: at(),
            revision: 1,
        };
        let (a, b) = (connection("a", "x"), connection("b", "x"));
        assert_eq!(no_longer_served(&[stored(&a), stored(&b)], &fetched(std::slice::from_ref(&a))), 1);
        assert_eq!(no_longer_served(&[stored(&a)], &fetched(&[connection("a", "edited")])), 0);
    }
}

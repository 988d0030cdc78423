//! What a round has read and not yet committed.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::{
    DeviceDelta, EncodedTable, EventColumns, Finding, FindingKind, ReadPoint, TeamState, WindowState,
};
use crate::collect::Counted;
use crate::model::{DeviceId, Instant, Range, Stream};

use crate::pipeline::commit::change::{StreamChange, WindowChange};
use crate::pipeline::commit::piece::Piece;
use crate::pipeline::plan::ranges::{missing, union};
use crate::pipeline::settings::COMMIT_EVENTS_MIN;

/// A window of a stream.
pub type Place = (Stream, Range);

/// Events and changes that wait for their commit.
#[derive(Debug, Default)]
pub struct Batch {
    /// In the pieces in which they were read: put together, they would be moved each time.
    pub events: BTreeMap<Place, Vec<Piece>>,
    /// Events whose time is unusable: no window owns them.
    pub untimed: BTreeMap<Stream, Vec<Counted>>,
    pub changes: Vec<WindowChange>,
    /// Written with the next commit, but no reason for one.
    pub notes: BTreeMap<Stream, StreamChange>,
    pub streams: BTreeMap<Stream, StreamChange>,
    pub devices: DeviceDelta,
    pub findings: Vec<Finding>,
    pub noted: Vec<Finding>,
    /// Findings noted before that are to become a reason for a commit.
    promoted: Vec<Finding>,
    /// The computers that were listed last, and when.
    pub listed: Option<(Instant, BTreeSet<DeviceId>)>,
    /// Read points of connections that no commit holds.
    pub quiet_points: Vec<ReadPoint>,
    /// Files that windows become should they be committed as they are.
    pub encoded: BTreeMap<Place, EncodedTable>,
    held_events: usize,
    /// What is confirmed of each window by these changes.
    confirmed: BTreeMap<Place, Vec<Range>>,
    /// Windows of which more was confirmed since [`Batch::take_whole`] was asked last.
    grown: BTreeSet<Place>,
}

impl Batch {
    /// Adds events of one window; without a window, events that none owns.
    pub fn add_events(&mut self, stream: Stream, window: Option<Range>, piece: Piece) {
        if piece.events().is_empty() {
            return;
        }
        self.held_events += piece.events().len();
        match window {
            Some(window) => {
                self.encoded.remove(&(stream, window));
                self.events.entry((stream, window)).or_default().push(piece);
            }
            None => self.untimed.entry(stream).or_default().extend(piece.into_events()),
        }
    }

    pub fn add_change(&mut self, change: WindowChange) {
        if let Some(part) = change.confirmed {
            let place = (change.stream, change.window);
            let parts = self.confirmed.entry(place).or_default();
            *parts = union(parts, part);
            self.grown.insert(place);
        }
        self.changes.push(change);
    }

    /// The columns of windows that these changes, and nothing before them, have come to confirm as a whole since this was asked
    /// last. Windows that are encoded, or some of whose events are no columns, are not among them.
    pub fn take_whole(&mut self) -> Vec<(Place, Vec<EventColumns>)> {
        let grown = std::mem::take(&mut self.grown);
        let is_whole = |place: &Place| self.confirmed.get(place).is_some_and(|read| missing(place.1, read).is_empty());
        let whole = grown.into_iter().filter(|place| !self.encoded.contains_key(place) && is_whole(place));
        let columns = |place: Place| {
            let pieces = self.events.get(&place)?.iter();
            Some((place, pieces.map(|piece| piece.columns().cloned()).collect::<Option<_>>()?))
        };
        whole.filter_map(columns).collect()
    }

    pub fn change_stream(&mut self, stream: Stream, change: StreamChange) {
        self.streams.entry(stream).or_default().join(change);
    }

    /// Something worth remembering that is no reason for a commit: a round that brought nothing writes nothing.
    pub fn note_stream(&mut self, stream: Stream, change: StreamChange) {
        self.notes.entry(stream).or_default().join(change);
    }

    /// A finding that is no reason for a commit; written once for its stream, kind and subject.
    pub fn note_finding(&mut self, finding: Finding) {
        let same = |known: &Finding| is_same_matter(known, &finding);
        if !self.noted.iter().any(same) {
            self.noted.push(finding);
        }
    }

    /// Makes a noted finding a reason for a commit, where the batch that this one joins has it still.
    pub fn promote_finding(&mut self, finding: Finding) {
        self.promoted.push(finding);
    }

    pub fn held_events(&self) -> usize {
        self.held_events
    }

    /// Takes out what is worth a commit by itself: windows that are read whole, and, where they are not enough and no more
    /// may be held (`is_full`), of each window that is read in part its first unbroken stretch, so that its parts follow
    /// one another in time. Windows that are `busy` being encoded stay, and where the others are too few for a commit, all
    /// stays. Takes out everything where something waits that may speak of the rest: a commit must not vouch for what is
    /// held back.
    pub fn take_ready(&mut self, state: &TeamState, busy: &BTreeSet<Place>, is_full: bool) -> Self {
        let says_nothing_more =
            self.streams.is_empty() && self.notes.is_empty() && self.devices.is_empty() && self.findings.is_empty();
        let is_first_reading = |change: &WindowChange| {
            let held = state.windows.get(&(change.stream, change.window.start));
            change.confirmed.is_some() && held.is_none_or(|held| held.state == WindowState::Provisional)
        };
        if !says_nothing_more || !self.changes.iter().all(is_first_reading) {
            return if busy.is_empty() { std::mem::take(self) } else { Self::default() };
        }
        let whole = |(stream, window): &Place, parts: &[Range]| {
            let held = state.windows.get(&(*stream, window.start)).map_or(&[][..], |held| &held.confirmed);
            let read = parts.iter().fold(held.to_vec(), |read, part| union(&read, *part));
            missing(*window, &read).is_empty()
        };
        let mut held_back = self.confirmed.clone();
        held_back.retain(|place, parts| busy.contains(place) || !whole(place, parts));
        let staying: usize = held_back.keys().map(|place| self.events_of(place)).sum();
        if !is_full && self.held_events < COMMIT_EVENTS_MIN + staying {
            return Self::default();
        }
        let mut ready = self.split(&held_back);
        if is_full && ready.held_events < COMMIT_EVENTS_MIN {
            for parts in held_back.values_mut() {
                parts.remove(0);
            }
            ready.join(self.split(&held_back));
        }
        ready
    }

    fn events_of(&self, place: &Place) -> usize {
        self.events.get(place).into_iter().flatten().map(|piece| piece.events().len()).sum()
    }

    /// Events that the commit has to encode still; of the others no columns are needed for long.
    pub fn unencoded_events(&self) -> usize {
        self.held_events - self.encoded.keys().map(|place| self.events_of(place)).sum::<usize>()
    }

    /// Takes out all but the changes of `held_back` windows that lie in the ranges given, and their events.
    fn split(&mut self, held_back: &BTreeMap<Place, Vec<Range>>) -> Self {
        let mut rest = Self::default();
        let mut ready = std::mem::take(self);
        ready.confirmed.clear();
        let grown = std::mem::take(&mut ready.grown);
        for change in std::mem::take(&mut ready.changes) {
            let parts = held_back.get(&(change.stream, change.window));
            let waits =
                parts.is_some_and(|parts| change.confirmed.is_some_and(|c| parts.iter().any(|part| c.overlaps(part))));
            if waits { &mut rest } else { &mut ready }.add_change(change);
        }
        for (place, parts) in held_back {
            let waits = |held: &Counted| held.event.at().is_some_and(|at| parts.iter().any(|part| part.owns(at)));
            ready.encoded.remove(place);
            for piece in ready.events.remove(place).unwrap_or_default() {
                let (waiting, leaving) = piece.partition(waits);
                rest.held_events += waiting.events().len();
                for (batch, piece) in [(&mut rest, waiting), (&mut ready, leaving)] {
                    if !piece.events().is_empty() {
                        batch.events.entry(*place).or_default().push(piece);
                    }
                }
            }
        }
        ready.held_events -= rest.held_events;
        ready.grown.clear();
        // What stays has grown no more than it had: a window that is being encoded is not encoded once more.
        rest.grown = grown.into_iter().filter(|place| held_back.contains_key(place)).collect();
        *self = rest;
        ready
    }

    /// Adds what another batch holds, as if it had come after this one.
    pub fn join(&mut self, other: Self) {
        for (place, events) in other.events {
            if !other.encoded.contains_key(&place) {
                self.encoded.remove(&place);
            }
            self.events.entry(place).or_default().extend(events);
        }
        for (stream, events) in other.untimed {
            self.untimed.entry(stream).or_default().extend(events);
        }
        self.encoded.extend(other.encoded);
        other.changes.into_iter().for_each(|change| self.add_change(change));
        other.notes.into_iter().for_each(|(stream, note)| self.note_stream(stream, note));
        other.streams.into_iter().for_each(|(stream, change)| self.change_stream(stream, change));
        self.devices.added.extend(other.devices.added);
        self.devices.removed.extend(other.devices.removed);
        self.listed = other.listed.or(self.listed.take());
        self.findings.extend(other.findings);
        other.noted.into_iter().for_each(|finding| self.note_finding(finding));
        for finding in other.promoted {
            if let Some(at) = self.noted.iter().position(|noted| *noted == finding) {
                self.findings.push(self.noted.remove(at));
            }
        }
        self.held_events += other.held_events;
    }

    /// The read points that a commit of this batch may write.
    pub fn read_points(&self) -> Vec<(Stream, ReadPoint)> {
        let changes = self.streams.iter().chain(&self.notes);
        changes.flat_map(|(stream, change)| change.read_points.iter().map(|point| (*stream, *point))).collect()
    }

    /// Makes the notes a reason for a commit, where the round has written anyway.
    pub fn promote_notes(&mut self) {
        for (stream, change) in std::mem::take(&mut self.notes) {
            self.change_stream(stream, change);
        }
    }

    /// Whether there is nothing to commit.
    pub fn is_idle(&self) -> bool {
        self.held_events == 0
            && self.changes.is_empty()
            && self.streams.is_empty()
            && self.devices.is_empty()
            && self.findings.is_empty()
    }
}

/// The subject of a gap that is a second which never held still.
pub const UNSTABLE: &str = "unstable";

/// Whether two findings say the same of the same thing. Of gaps there are many.
pub fn is_same_matter(a: &Finding, b: &Finding) -> bool {
    let is_of_same_times = a.kind != FindingKind::Gap || (a.from, a.to) == (b.from, b.to);
    is_of_same_times && (a.stream, a.kind, &a.subject) == (b.stream, b.kind, &b.subject)
}

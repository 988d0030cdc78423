//! The events and changes that a round has read and not yet committed.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::{DeviceDelta, Finding, FindingKind, ReadPoint, TeamState, WindowState};
use crate::collect::CountedEvent;
use crate::model::ranges::{missing, union};
use crate::model::{DeviceId, Instant, Range, Stream};
use crate::pipeline::commit::{StreamChange, WindowChange};
use crate::pipeline::settings::{COMMIT_EVENTS_MIN, HELD_EVENTS_MAX};
use crate::pipeline::team::{Permit, split_off};

pub type StreamWindow = (Stream, Range);

/// Events and changes that wait for their commit.
#[derive(Debug, Default)]
pub struct Batch {
    pub events: BTreeMap<StreamWindow, Vec<CountedEvent>>,
    /// Events with an unusable time: no window owns them.
    pub untimed: BTreeMap<Stream, Vec<CountedEvent>>,
    pub changes: Vec<WindowChange>,
    pub streams: Vec<(Stream, StreamChange)>,
    pub read_points: Vec<(Stream, ReadPoint)>,
    /// The changes and read points of streams trigger a commit. Otherwise the next commit writes them.
    pub is_due: bool,
    pub devices: DeviceDelta,
    pub findings: Vec<Finding>,
    /// Findings that never trigger a commit. Each is written once for its stream, kind and subject.
    pub deferred_findings: Vec<Finding>,
    /// The last list of computers, and its time.
    pub listed: Option<(Instant, BTreeSet<DeviceId>)>,
    /// The size of the events, in events of usual size.
    size: usize,
    /// The room of the events. The commit keeps it to its end.
    pub permit: Option<Permit>,
}

impl Batch {
    /// Gives the events their room. The rest of the room becomes free.
    pub fn within(mut self, mut permit: Permit) -> Self {
        drop(split_off(&mut permit, self.size));
        self.permit = Some(permit);
        self
    }

    /// Adds an event of a window. Without a window, no window owns the event.
    pub fn add_event(&mut self, stream: Stream, window: Option<Range>, event: CountedEvent) {
        self.size += event.event.size();
        match window {
            Some(window) => self.events.entry((stream, window)).or_default().push(event),
            None => self.untimed.entry(stream).or_default().push(event),
        }
    }

    /// Whether streams have changes or read points.
    pub fn has_streams(&self) -> bool {
        !(self.streams.is_empty() && self.read_points.is_empty())
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Takes out the windows that were read completely: a window read in parts would be written twice. Takes out
    /// everything if the batch is too large without them, or if it holds a change or a finding that may depend on the
    /// remaining events.
    pub fn take_ready(&mut self, state: &TeamState) -> Option<Self> {
        let vouches = self.has_streams() || !(self.devices.is_empty() && self.findings.is_empty());
        let is_first_reading = |change: &WindowChange| {
            let held = state.windows.get(&(change.stream, change.window.start));
            change.confirmed.is_some() && held.is_none_or(|held| held.state == WindowState::Provisional)
        };
        if vouches || !self.changes.iter().all(is_first_reading) {
            return Some(std::mem::take(self));
        }
        let partial = self.partial_windows(state);
        let staying: usize = partial
            .iter()
            .filter_map(|place| self.events.get(place))
            .map(|events| CountedEvent::total_size(events))
            .sum();
        let (ready, is_full) = (self.size - staying, self.size >= HELD_EVENTS_MAX);
        if ready >= COMMIT_EVENTS_MIN || (is_full && ready > 0) {
            return Some(self.split_off(&partial));
        }
        is_full.then(|| std::mem::take(self))
    }

    /// The windows that were read only in part.
    fn partial_windows(&self, state: &TeamState) -> BTreeSet<StreamWindow> {
        let mut read: BTreeMap<StreamWindow, Vec<Range>> = BTreeMap::new();
        for change in &self.changes {
            let held = || state.windows.get(&(change.stream, change.window.start)).map(|held| held.confirmed.clone());
            let parts = read.entry((change.stream, change.window)).or_insert_with(|| held().unwrap_or_default());
            *parts = change.confirmed.map_or_else(|| parts.clone(), |part| union(parts, part));
        }
        read.retain(|(_, window), parts| !missing(*window, parts).is_empty());
        read.into_keys().collect()
    }

    /// Takes out everything except the changes and events of some windows.
    fn split_off(&mut self, staying: &BTreeSet<StreamWindow>) -> Self {
        let mut ready = std::mem::take(self);
        let stays = |change: &WindowChange| staying.contains(&(change.stream, change.window));
        (self.changes, ready.changes) = std::mem::take(&mut ready.changes).into_iter().partition(stays);
        (self.events, ready.events) =
            std::mem::take(&mut ready.events).into_iter().partition(|(place, _)| staying.contains(place));
        self.size = self.events.values().map(|events| CountedEvent::total_size(events)).sum();
        ready.size -= self.size;
        let stay = |permit: &mut Permit| permit.split(self.size.min(permit.num_permits()));
        self.permit = ready.permit.as_mut().and_then(stay);
        ready
    }

    /// Adds a later batch.
    pub fn join(&mut self, other: Self) {
        for (place, events) in other.events {
            self.events.entry(place).or_default().extend(events);
        }
        for (stream, events) in other.untimed {
            self.untimed.entry(stream).or_default().extend(events);
        }
        self.changes.extend(other.changes);
        self.streams.extend(other.streams);
        self.read_points.extend(other.read_points);
        self.is_due |= other.is_due;
        self.devices.added.extend(other.devices.added);
        self.devices.removed.extend(other.devices.removed);
        self.listed = other.listed.or(self.listed.take());
        self.findings.extend(other.findings);
        self.deferred_findings.extend(other.deferred_findings);
        self.size += other.size;
        match (&mut self.permit, other.permit) {
            (Some(permit), Some(more)) => permit.merge(more),
            (permit, more) => *permit = permit.take().or(more),
        }
    }

    /// Whether the batch has nothing to commit.
    pub fn is_idle(&self) -> bool {
        self.size == 0 && self.changes.is_empty() && !self.is_due && self.devices.is_empty() && self.findings.is_empty()
    }
}

/// The subject of a gap: a range that never became stable.
pub const UNSTABLE: &str = "unstable";

/// Whether two findings repeat each other. Two gaps of one subject repeat each other only if their times are equal.
pub fn is_duplicate(a: &Finding, b: &Finding) -> bool {
    let is_of_same_times = a.kind != FindingKind::Gap || (a.from, a.to) == (b.from, b.to);
    is_of_same_times && (a.stream, a.kind, &a.subject) == (b.stream, b.kind, &b.subject)
}

//! What a round has read and not yet committed.

use std::collections::BTreeMap;

use crate::archive::{DeviceDelta, Finding};
use crate::collect::Counted;
use crate::model::{Range, Stream};

use super::change::{StreamChange, WindowChange};

/// Events and changes that wait for their commit.
#[derive(Debug, Default)]
pub struct Batch {
    pub events: BTreeMap<(Stream, Range), Vec<Counted>>,
    /// Events whose time is unusable: no window owns them.
    pub untimed: BTreeMap<Stream, Vec<Counted>>,
    pub changes: Vec<WindowChange>,
    /// Written with the next commit, but no reason for one.
    pub notes: BTreeMap<Stream, StreamChange>,
    pub streams: BTreeMap<Stream, StreamChange>,
    pub devices: DeviceDelta,
    pub findings: Vec<Finding>,
    pub noted: Vec<Finding>,
    held_events: usize,
}

impl Batch {
    pub fn add_event(&mut self, stream: Stream, window: Option<Range>, event: Counted) {
        self.held_events += 1;
        match window {
            Some(window) => self.events.entry((stream, window)).or_default().push(event),
            None => self.untimed.entry(stream).or_default().push(event),
        }
    }

    pub fn add_change(&mut self, change: WindowChange) {
        self.changes.push(change);
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

    pub fn held_events(&self) -> usize {
        self.held_events
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

/// Whether two findings say the same of the same thing.
pub fn is_same_matter(a: &Finding, b: &Finding) -> bool {
    (a.stream, a.kind, &a.subject) == (b.stream, b.kind, &b.subject)
}

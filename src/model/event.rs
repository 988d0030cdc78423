//! One event as the service sent it, before normalization.

use bytes::Bytes;

use super::{DeviceId, Digest, EventId, Instant, Reject, RejectReason};

/// The most bytes of text of an event of usual size.
const USUAL_BYTES_MAX: usize = 1024;

/// The event time in the served text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServedTime {
    At(Instant),
    /// No window owns such an event.
    Unusable(Box<Reject>),
}

impl ServedTime {
    pub fn unusable(reason: RejectReason, detail: impl Into<String>) -> Self {
        Self::Unusable(Box::new(Reject::new(reason, detail)))
    }
}

/// An event's own bytes, and the few facts that reading a window needs.
#[derive(Debug, Clone)]
pub struct RawEvent {
    /// The JSON text exactly as served, except for redacted secrets. An event that is not UTF-8 goes to quarantine.
    pub text: Bytes,
    /// A string under a key named `secret`, or the credential, was replaced.
    pub redacted: bool,
    /// The service's own id, if the stream has ids.
    pub id: Option<EventId>,
    pub time: ServedTime,
    /// The digest of `text`.
    pub digest: Digest,
    /// The text is already known to be valid JSON.
    pub is_json: bool,
    /// The requested computer, for the deprecated per-computer history: its events name no computer.
    pub device: Option<DeviceId>,
}

/// The identity of served events: id and content if there is an id, else the content alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventIdentity {
    pub id: Option<EventId>,
    pub digest: Digest,
}

impl RawEvent {
    pub fn new(text: Bytes, redacted: bool, id: Option<EventId>, time: ServedTime) -> Self {
        let digest = Digest::of(&text);
        Self { text, redacted, id, time, digest, is_json: false, device: None }
    }

    /// The size in events of usual size, at least one. Limits of memory count a large event as several events.
    pub fn size(&self) -> usize {
        self.text.len().div_ceil(USUAL_BYTES_MAX).max(1)
    }

    pub fn identity(&self) -> EventIdentity {
        EventIdentity { id: self.id.clone(), digest: self.digest }
    }

    /// The event time, if it is usable.
    pub fn at(&self) -> Option<Instant> {
        match self.time {
            ServedTime::At(at) => Some(at),
            ServedTime::Unusable(_) => None,
        }
    }
}

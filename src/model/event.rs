//! One event as the service served it, before anything is made of it.

use bytes::Bytes;

use super::{DeviceId, Digest, EventId, Instant};

/// The event time as it stood on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServedTime {
    At(Instant),
    /// Missing, not an integer, or outside 2000 to 2100; the text says which. No window owns such an event.
    Unusable(String),
}

/// An event's own bytes, and the little that reading a window must know of it.
#[derive(Debug, Clone)]
pub struct RawEvent {
    /// The JSON text exactly as served, but for redacted secrets. Not always UTF-8: such an event is quarantined.
    pub text: Bytes,
    /// A string under a key named `secret`, or the credential, was replaced.
    pub redacted: bool,
    /// The service's own id, where the stream has one.
    pub id: Option<EventId>,
    pub time: ServedTime,
    /// The digest of `text`.
    pub digest: Digest,
    /// The text is known to be JSON: it was read so, as it stands.
    pub is_json: bool,
    /// The computer that was asked for, in the deprecated per-computer history: its events do not name one.
    pub device: Option<DeviceId>,
}

/// What makes two served events the same event: id and content where there is an id, else the content alone.
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

    pub fn identity(&self) -> EventIdentity {
        EventIdentity { id: self.id.clone(), digest: self.digest }
    }

    /// The event time, where it is usable.
    pub fn at(&self) -> Option<Instant> {
        match self.time {
            ServedTime::At(at) => Some(at),
            ServedTime::Unusable(_) => None,
        }
    }
}

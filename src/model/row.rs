//! Typed rows: what `normalize` makes and `archive` keeps. The columns of the datasets stand in `archive::schema`.

use bytes::Bytes;

use super::{ConnectionId, DeviceId, EventId, Instant, Stream, TeamId, Text};

/// One archived event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    pub team_id: TeamId,
    pub event_id: EventId,
    pub time: Instant,
    /// The event field's own name, as served.
    pub event_type: Text,
    /// 1 for the first content seen under an id, 2 for the next, and so on.
    pub revision: u32,
    pub first_seen_at: Instant,
    pub redacted: bool,
    /// The event's JSON text; UTF-8.
    pub raw: Bytes,
    pub detail: Detail,
}

/// The columns that a stream adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    Activity { token_info: Option<String>, payload: Option<String> },
    Connections(Box<ConnectionDetail>),
    Billing { payload: Option<String> },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionDetail {
    pub connection_id: Option<ConnectionId>,
    pub device_id: Option<DeviceId>,
    pub computer_host_name: Option<Text>,
    pub tunnel_id: Option<Text>,
    pub source_type: Option<Text>,
    pub peer_email: Option<Text>,
    pub peer_ip: Option<Text>,
    pub direct_ip: Option<Text>,
    pub local_user_name: Option<Text>,
    pub failure_reason: Option<Text>,
}

/// One event that could not be made a row: kept, counted, and read again by a later version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectRow {
    pub team_id: TeamId,
    pub stream: Stream,
    /// The service's id, where there is one; else a content hash and occurrence number.
    pub event_id: EventId,
    /// Known when the time was not what was wrong.
    pub time: Option<Instant>,
    /// A word for machines, for example `time_out_of_range`.
    pub reason: String,
    /// A sentence for people.
    pub detail: String,
    pub first_seen_at: Instant,
    pub redacted: bool,
    /// The event's bytes as served; not always UTF-8.
    pub raw: Bytes,
}

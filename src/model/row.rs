//! Typed rows: `normalize` makes them, `archive` keeps them. `archive::table::schema` defines the columns of the datasets.

use std::ops::Deref;

use bytes::Bytes;

use super::texts::Texts;
use super::{ConnectionId, DeviceId, Digest, EventId, Instant, Stream, TeamId, Text};

/// The text of an event, and its digest. A row's digest uses the digest that the reading of the event computed, so a change of
/// the text in memory shows when the file is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawText {
    text: Bytes,
    digest: Digest,
}

impl RawText {
    /// `digest` is the digest of `text`.
    pub fn new(text: Bytes, digest: Digest) -> Self {
        Self { text, digest }
    }

    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl<T: Into<Bytes> + AsRef<[u8]>> From<T> for RawText {
    fn from(text: T) -> Self {
        let digest = Digest::of(text.as_ref());
        Self { text: text.into(), digest }
    }
}

impl Deref for RawText {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.text
    }
}

/// One archived event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    pub team_id: TeamId,
    pub event_id: EventId,
    pub time: Instant,
    /// The name of the event field, as served.
    pub event_type: Text,
    /// 1 for the first content seen under an id, 2 for the next, and so on.
    pub revision: u32,
    pub first_seen_at: Instant,
    pub redacted: bool,
    /// The event's JSON text; UTF-8. Empty if the archive does not keep it.
    pub raw: RawText,
    /// If the archive does not keep `raw`: the keyed digest of the text, by which the event is known.
    pub served_digest: Option<Digest>,
    pub detail: Detail,
}

impl EventRow {
    /// The row without `raw` and `payload`. `known_as` gives the keyed digest of the text's digest. An id that was made of the
    /// unkeyed digest is made of the keyed one, because the unkeyed one confirms a guess of the text.
    #[must_use]
    pub fn without_text(self, known_as: impl Fn(&Digest) -> Digest) -> Self {
        let digest = self.raw.digest();
        let served = known_as(&digest);
        let event_id = match self.event_id.as_str().strip_prefix(&digest.content_id()) {
            Some(occurrence) => EventId::new(format!("{}{occurrence}", served.content_id())),
            None => self.event_id,
        };
        let detail = match self.detail {
            Detail::Activity { token_info, .. } => Detail::Activity { token_info, payload: None },
            Detail::Billing { .. } => Detail::Billing { payload: None },
            detail @ Detail::Connections(_) => detail,
        };
        Self { event_id, raw: Bytes::new().into(), served_digest: Some(served), detail, ..self }
    }
}

/// The stream's own columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    Activity { token_info: Option<String>, payload: Option<String> },
    Connections(ConnectionTexts),
    Billing { payload: Option<String> },
}

impl Detail {
    /// The texts of a stream's own columns, in order; `None` if their number is wrong.
    pub fn new(stream: Stream, texts: &[Option<&str>]) -> Option<Self> {
        let owned = |text: &Option<&str>| text.map(str::to_owned);
        match (stream, texts) {
            (Stream::Activity, [token_info, payload]) => {
                Some(Detail::Activity { token_info: owned(token_info), payload: owned(payload) })
            }
            (Stream::Billing, [payload]) => Some(Detail::Billing { payload: owned(payload) }),
            (Stream::Connections, texts) => Some(Detail::Connections(ConnectionTexts::new(texts.try_into().ok()?))),
            _ => None,
        }
    }

    /// Passes the texts of the stream's own columns, in order, to `look`.
    pub fn with_texts<T>(&self, look: impl FnOnce(&[Option<&str>]) -> T) -> T {
        match self {
            Detail::Activity { token_info, payload } => look(&[token_info.as_deref(), payload.as_deref()]),
            Detail::Billing { payload } => look(&[payload.as_deref()]),
            Detail::Connections(texts) => look(&texts.all()),
        }
    }
}

/// The details of a connection in a row, in the order of the archive's columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionTexts(Texts<10>);

impl ConnectionTexts {
    /// The number of columns.
    pub const COUNT: usize = 10;

    /// The connection, the details of a session in the order of [`SESSION_DETAILS`](super::SESSION_DETAILS), and the failure reason.
    pub fn new(texts: [Option<&str>; Self::COUNT]) -> Self {
        Self(Texts::new(texts))
    }

    /// The text of one column.
    pub fn get(&self, column: usize) -> Option<&str> {
        self.0.get(column)
    }

    pub fn all(&self) -> [Option<&str>; Self::COUNT] {
        self.0.all()
    }

    pub fn connection_id(&self) -> Option<&str> {
        self.get(0)
    }

    pub fn device_id(&self) -> Option<&str> {
        self.get(1)
    }

    /// The details by name.
    pub fn detail(&self) -> ConnectionDetail {
        let [connection_id, device_id, others @ ..] = self.all();
        let [
            computer_host_name,
            tunnel_id,
            source_type,
            peer_email,
            peer_ip,
            direct_ip,
            local_user_name,
            failure_reason,
        ] = others.map(|text| text.map(Text::new));
        ConnectionDetail {
            connection_id: connection_id.map(ConnectionId::from),
            device_id: device_id.map(DeviceId::from),
            computer_host_name,
            tunnel_id,
            source_type,
            peer_email,
            peer_ip,
            direct_ip,
            local_user_name,
            failure_reason,
        }
    }
}

impl From<ConnectionDetail> for ConnectionTexts {
    fn from(detail: ConnectionDetail) -> Self {
        Self::new([
            detail.connection_id.as_ref().map(ConnectionId::as_str),
            detail.device_id.as_ref().map(DeviceId::as_str),
            detail.computer_host_name.as_deref(),
            detail.tunnel_id.as_deref(),
            detail.source_type.as_deref(),
            detail.peer_email.as_deref(),
            detail.peer_ip.as_deref(),
            detail.direct_ip.as_deref(),
            detail.local_user_name.as_deref(),
            detail.failure_reason.as_deref(),
        ])
    }
}

/// The details of a connection by name.
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

/// One event that does not fit the schema: kept, counted, and read again by a later version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectRow {
    pub team_id: TeamId,
    pub stream: Stream,
    /// The service's id if there is one; else a content hash and occurrence number.
    pub event_id: EventId,
    /// The time, unless it was the problem.
    pub time: Option<Instant>,
    /// A code for programs, for example `time_out_of_range`.
    pub reason: String,
    /// A sentence for people.
    pub detail: String,
    pub first_seen_at: Instant,
    pub redacted: bool,
    /// The event's bytes as served; not always UTF-8.
    pub raw: Bytes,
    /// Set if an erasure rewrote the row.
    pub erased: Option<ErasedMark>,
}

/// The mark that an erasure leaves on a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasedMark {
    /// The orders, separated by spaces.
    pub orders: String,
    /// A keyed digest of the served text.
    pub original: String,
}

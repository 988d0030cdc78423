//! One connection as a whole: what `correlate` makes of its events and `archive` keeps.

use super::{ConnectionDetail, ConnectionId, DeviceId, Instant, TeamId};

/// How a connection stands, as far as its events tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// An authentication failed, and none succeeded.
    AuthFailed,
    /// Established or authenticated, and closed.
    Ended,
    /// Established or authenticated, and not closed.
    Open,
    /// Closed, and never established.
    ClosedOnly,
    RequestedOnly,
}

impl Outcome {
    pub const ALL: [Outcome; 5] =
        [Outcome::AuthFailed, Outcome::Ended, Outcome::Open, Outcome::ClosedOnly, Outcome::RequestedOnly];

    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::AuthFailed => "auth_failed",
            Outcome::Ended => "ended",
            Outcome::Open => "open",
            Outcome::ClosedOnly => "closed_only",
            Outcome::RequestedOnly => "requested_only",
        }
    }
}

/// The columns of a connection's details, in order.
pub const SESSION_DETAILS: [&str; 8] = [
    "device_id",
    "computer_host_name",
    "tunnel_id",
    "source_type",
    "peer_email",
    "peer_ip",
    "direct_ip",
    "local_user_name",
];

/// One session: all that the archived events of one `connectionID` say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub team_id: TeamId,
    pub connection_id: ConnectionId,
    /// The first of its kind, as the next two.
    pub requested_at: Option<Instant>,
    pub established_at: Option<Instant>,
    pub authenticated_at: Option<Instant>,
    /// The last of its kind.
    pub closed_at: Option<Instant>,
    pub first_event_at: Instant,
    pub last_event_at: Instant,
    /// Milliseconds from established (else from authenticated) to closed; none where unknown or negative.
    pub duration_ms: Option<i64>,
    pub outcome: Outcome,
    pub failed_attempts: i64,
    /// JSON: the distinct reasons, sorted.
    pub failure_reasons: Option<String>,
    /// In the order of [`SESSION_DETAILS`]: of each, the value of the earliest event that has one.
    pub details: [Option<String>; 8],
    pub event_count: i64,
    /// JSON: of each detail with several values, all of them, sorted.
    pub conflicts: Option<String>,
}

impl ConnectionDetail {
    /// In the order of [`SESSION_DETAILS`].
    pub fn of_session(&self) -> [Option<&str>; 8] {
        [
            self.device_id.as_ref().map(DeviceId::as_str),
            self.computer_host_name.as_deref(),
            self.tunnel_id.as_deref(),
            self.source_type.as_deref(),
            self.peer_email.as_deref(),
            self.peer_ip.as_deref(),
            self.direct_ip.as_deref(),
            self.local_user_name.as_deref(),
        ]
    }
}

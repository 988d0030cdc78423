//! One whole connection: `correlate` makes it from its events, `archive` keeps it.

use strum::IntoStaticStr;

use super::texts::Texts;
use super::{ConnectionId, ConnectionTexts, EventRow, Instant, TeamId, row::Detail};

/// The outcome of a connection, as far as its events tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum SessionOutcome {
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

impl SessionOutcome {
    pub const ALL: [SessionOutcome; 5] = [
        SessionOutcome::AuthFailed,
        SessionOutcome::Ended,
        SessionOutcome::Open,
        SessionOutcome::ClosedOnly,
        SessionOutcome::RequestedOnly,
    ];

    pub const fn as_str(self) -> &'static str {
        self.into_str()
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

/// The details of a session, in the order of [`SESSION_DETAILS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTexts(Texts<8>);

impl SessionTexts {
    pub fn new(texts: [Option<&str>; 8]) -> Self {
        Self(Texts::new(texts))
    }

    /// The text of one column.
    pub fn get(&self, column: usize) -> Option<&str> {
        self.0.get(column)
    }

    pub fn all(&self) -> [Option<&str>; 8] {
        self.0.all()
    }
}

/// One session: the summary of all archived events of one `connectionID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub team_id: TeamId,
    pub connection_id: ConnectionId,
    /// The first event of its kind, as for the next two.
    pub requested_at: Option<Instant>,
    pub established_at: Option<Instant>,
    pub authenticated_at: Option<Instant>,
    /// The last event of its kind.
    pub closed_at: Option<Instant>,
    pub first_event_at: Instant,
    pub last_event_at: Instant,
    /// Milliseconds from established (else from authenticated) to closed; `None` if unknown or negative.
    pub duration_ms: Option<i64>,
    pub outcome: SessionOutcome,
    pub failed_attempts: i64,
    /// JSON: the distinct reasons, sorted.
    pub failure_reasons: Option<String>,
    /// For each detail, the value of the earliest event that has one.
    pub details: SessionTexts,
    pub event_count: i64,
    /// JSON: for each detail with several values, all of them, sorted.
    pub conflicts: Option<String>,
}

impl SessionRow {
    /// Whether this session equals `archived`, which comes from a file: files store times in microseconds.
    pub fn equals_archived(&self, archived: &SessionRow) -> bool {
        let micros = |at: Instant| Instant::from_micros(at.micros());
        let maybe = |at: Option<Instant>| at.map(micros);
        // List all members, so that a new one is not forgotten here.
        let Self {
            team_id,
            connection_id,
            requested_at,
            established_at,
            authenticated_at,
            closed_at,
            first_event_at,
            last_event_at,
            duration_ms,
            outcome,
            failed_attempts,
            failure_reasons,
            details,
            event_count,
            conflicts,
        } = self;
        let times = [*requested_at, *established_at, *authenticated_at, *closed_at].map(maybe);
        let texts = (failure_reasons, details, conflicts);
        (team_id, connection_id, times) == (&archived.team_id, &archived.connection_id, archived.times())
            && [*first_event_at, *last_event_at].map(micros) == [archived.first_event_at, archived.last_event_at]
            && (*duration_ms, *outcome) == (archived.duration_ms, archived.outcome)
            && (*failed_attempts, *event_count) == (archived.failed_attempts, archived.event_count)
            && texts == (&archived.failure_reasons, &archived.details, &archived.conflicts)
    }

    fn times(&self) -> [Option<Instant>; 4] {
        [self.requested_at, self.established_at, self.authenticated_at, self.closed_at]
    }
}

/// The parts of a connection event that sessions need; its text does not matter.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionEvent<'a> {
    pub team_id: &'a TeamId,
    pub connection_id: Option<&'a str>,
    pub event_id: &'a str,
    pub event_type: &'a str,
    pub time: Instant,
    pub revision: u32,
    pub first_seen_at: Instant,
    /// In the order of [`SESSION_DETAILS`].
    pub details: [Option<&'a str>; 8],
    pub failure_reason: Option<&'a str>,
}

impl<'a> From<&'a EventRow> for ConnectionEvent<'a> {
    /// An event of another stream has no details.
    fn from(row: &'a EventRow) -> Self {
        let texts = match &row.detail {
            Detail::Connections(texts) => texts.all(),
            Detail::Activity { .. } | Detail::Billing { .. } => [None; ConnectionTexts::COUNT],
        };
        let [connection_id, details @ .., failure_reason] = texts;
        Self {
            team_id: &row.team_id,
            connection_id,
            event_id: row.event_id.as_str(),
            event_type: &row.event_type,
            time: row.time,
            revision: row.revision,
            first_seen_at: row.first_seen_at,
            details,
            failure_reason,
        }
    }
}

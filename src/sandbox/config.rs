//! The configuration of a sandbox.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::model::Instant;

use super::choices::Choices;
use super::mishaps::FaultRule;
use super::saved::Saved;

const DAY: Duration = Duration::from_secs(86_400);
/// How many days of events after its end a live sandbox prepares.
pub const LIVE_DAYS: u32 = 7;
/// The records' 32-bit positions hold no more events of one team.
pub(super) const TEAM_SESSIONS_MAX: u64 = 500_000_000;

/// Equal configurations with equal ends serve equal bytes on every machine.
#[derive(Clone)]
pub struct SandboxConfig {
    pub seed: u64,
    pub teams: u32,
    /// Whole UTC days of history before the day of `end`.
    pub days: u32,
    /// Connections a day and team, averaged over a week; one connection makes three to four events.
    pub sessions_per_day: u32,
    pub people_per_team: u32,
    pub computers_per_team: u32,
    /// `127.0.0.1:0` takes a free port.
    pub listen: SocketAddr,
    /// The time of a clock that only requests move. `None`: the machine's clock.
    pub now: Option<Instant>,
    /// Sandbox seconds in one real second. `None`: 1, or 0 if `now` is set.
    pub speed: Option<u32>,
    /// The time of the last generated event, without `days_ahead`. `None`: the full hour of the clock at the start.
    pub end: Option<Instant>,
    /// How many days after `end` have events. The sandbox serves each event once the clock has reached it.
    pub days_ahead: u32,
    pub lateness: Lateness,
    /// One day in this many has a second with more events than a page; 0: none.
    pub dense_every_days: u32,
    /// Whether a few in a thousand connection events have undocumented types or fields, or lack documented ones.
    pub odd_events: bool,
    /// `planFeatures.deviceEventsMaxRetrievalDuration`. `None`: 90 days, or the whole history if it is longer.
    pub plan_span: Option<Duration>,
    pub choices: Choices,
    pub faults: Option<FaultHook>,
    /// Fault rules. A sandbox-only request can replace them.
    pub fault_rules: Vec<FaultRule>,
    /// The state to load at the start. The settings of the data must agree with it: see [`Saved::config`].
    pub saved: Option<Saved>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            teams: 2,
            days: 30,
            sessions_per_day: 200,
            people_per_team: 25,
            computers_per_team: 40,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            now: None,
            speed: None,
            end: None,
            days_ahead: 0,
            lateness: Lateness::default(),
            dense_every_days: 5,
            odd_events: true,
            plan_span: None,
            choices: Choices::default(),
            faults: None,
            fault_rules: Vec::new(),
            saved: None,
        }
    }
}

impl SandboxConfig {
    pub(super) fn plan_span(&self) -> Duration {
        self.plan_span.unwrap_or(DAY * self.days.saturating_add(7).max(90))
    }
}

/// How many events the service shows only some time after they happened, and how long after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Late events in a million.
    pub per_million: u32,
    /// The longest delay. Delays are spread evenly from one millisecond to this one.
    pub longest: Duration,
}

/// A request as a fault hook sees it, without the token.
#[derive(Debug, Clone)]
pub struct RequestInfo {
    /// The number of the request, from 0, over all requests of this sandbox.
    pub serial: u64,
    pub method: String,
    pub path: String,
    /// The query as the client sent it, without `?`.
    pub query: String,
    /// The sandbox's clock.
    pub now: Instant,
}

/// A fault of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This status with an error body, and a `Retry-After` header of this text.
    Status { status: u16, retry_after: Option<String> },
    /// Half of the JSON text, with a `Content-Length` that matches the half.
    Truncate,
    /// Half of the body; then the connection ends before the announced length.
    CutShort,
    /// Status 200 with this content type and body.
    Body { content_type: &'static str, body: &'static str },
    /// Status 200 with a page of HTML.
    Html,
    /// A reset connection without an answer.
    Reset,
    /// The correct answer after a delay.
    Delay(Duration),
    /// A redirect to this address.
    Redirect(String),
    /// The correct answer, with this moment in its `Date` header.
    Dated(Instant),
}

/// Decides the fault of each request. The server's tasks call it, so it must be quick. It may use the sandbox's
/// handle, for example to add or remove events between two pages.
pub type FaultHook = Arc<dyn Fn(&RequestInfo) -> Option<Fault> + Send + Sync>;

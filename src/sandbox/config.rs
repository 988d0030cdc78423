//! What a sandbox is asked for.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::model::Instant;

use super::choices::Choices;
use super::mishaps::FaultRule;
use super::saved::Saved;

const DAY: Duration = Duration::from_secs(86_400);
/// How far ahead of its end a live sandbox has events in store.
pub const LIVE_DAYS: u32 = 7;
/// More events than this in one team would not fit the records' 32-bit positions.
pub(super) const TEAM_SESSIONS_MAX: u64 = 500_000_000;

/// What a sandbox is made of. Equal configurations with equal ends serve equal bytes on every machine.
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
    /// A clock that stands still until it is moved. `None`: the machine's own.
    pub now: Option<Instant>,
    /// Seconds of the sandbox in a real one. `None`: 1, or 0 where `now` is given.
    pub speed: Option<u32>,
    /// No generated event is younger, unless `days_ahead`. `None`: the clock's hour at the start.
    pub end: Option<Instant>,
    /// Events in store for the days after `end`; each is served once the clock has reached it.
    pub days_ahead: u32,
    pub lateness: Lateness,
    /// On one day in so many, a second holds more events than a page; 0: never.
    pub dense_every_days: u32,
    /// Whether a few of a thousand connection events are of a type, or have fields, that the document does not name, and
    /// others leave out what it names, as those of a service that grows.
    pub odd_events: bool,
    /// `planFeatures.deviceEventsMaxRetrievalDuration`. `None`: 90 days, or all of the history where it is longer.
    pub plan_span: Option<Duration>,
    pub choices: Choices,
    pub faults: Option<FaultHook>,
    /// Faults by rule, which a sandbox-only request may replace.
    pub fault_rules: Vec<FaultRule>,
    /// Taken up at the start; all that the data is made of must be as it says: see [`Saved::config`].
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

/// Events that the service shows only some time after they happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Of a million events, how many are late.
    pub per_million: u32,
    /// The longest delay; delays are spread evenly from one millisecond to this.
    pub longest: Duration,
}

/// A request as a fault hook sees it. The token is not part of it.
#[derive(Debug, Clone)]
pub struct RequestInfo {
    /// Counted from 0 over all requests of this sandbox.
    pub serial: u64,
    pub method: String,
    pub path: String,
    /// The query as sent, without `?`.
    pub query: String,
    /// The sandbox's clock.
    pub now: Instant,
}

/// What goes wrong with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This status with an error body, and a `Retry-After` header of this text.
    Status { status: u16, retry_after: Option<String> },
    /// The JSON text is cut in half, under a header that fits the half.
    Truncate,
    /// Half of the body arrives, then the connection ends before the promised length.
    CutShort,
    /// Status 200 with this content type and body.
    Body { content_type: &'static str, body: &'static str },
    /// Status 200 with a page of HTML.
    Html,
    /// The connection is reset without an answer.
    Reset,
    /// The answer is right but comes later.
    Delay(Duration),
    /// A redirection to this address.
    Redirect(String),
    /// The answer is right, but its `Date` header tells this moment.
    Dated(Instant),
}

/// Asked before each request; called on the server's tasks, so it must be quick. It may use the sandbox's handle, for
/// example to add or remove events between two pages.
pub type FaultHook = Arc<dyn Fn(&RequestInfo) -> Option<Fault> + Send + Sync>;

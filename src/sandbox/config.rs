//! The configuration of a sandbox.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::model::Instant;

use super::choices::Choices;
use super::fault::FaultHook;
use super::fault_rules::FaultRule;
use super::saved::Saved;
use super::stream_store::Lateness;

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

impl Saved {
    /// The configuration that a sandbox needs to load this state.
    pub fn config(self) -> SandboxConfig {
        let made = self.made_of.clone();
        SandboxConfig {
            seed: made.seed,
            teams: made.teams,
            days: made.days,
            sessions_per_day: made.sessions_per_day,
            people_per_team: made.people_per_team,
            computers_per_team: made.computers_per_team,
            end: Some(made.end),
            days_ahead: made.days_ahead,
            lateness: Lateness {
                per_million: made.late_per_million,
                longest: Duration::from_millis(made.late_up_to_ms),
            },
            dense_every_days: made.dense_every_days,
            odd_events: made.odd_events,
            plan_span: made.plan_span_seconds.map(Duration::from_secs),
            saved: Some(self),
            ..SandboxConfig::default()
        }
    }
}

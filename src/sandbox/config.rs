//! What a sandbox is asked for, and the switches for what the document leaves open.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::model::Instant;

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
    /// A clock that stands still until the handle moves it. `None`: the machine's own.
    pub now: Option<Instant>,
    /// No generated event is younger, unless `days_ahead`. `None`: the clock's hour at the start.
    pub end: Option<Instant>,
    /// Events in store for the days after `end`; each is served once the clock has reached it.
    pub days_ahead: u32,
    pub lateness: Lateness,
    /// On one day in so many, a second holds more events than a page; 0: never.
    pub dense_every_days: u32,
    /// `planFeatures.deviceEventsMaxRetrievalDuration`. `None`: 90 days, or all of the history where it is longer.
    pub plan_span: Option<Duration>,
    /// Whether connection events older than the plan's span are withheld.
    pub enforce_plan_span: bool,
    pub choices: Choices,
    pub faults: Option<FaultHook>,
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
            end: None,
            days_ahead: 0,
            lateness: Lateness::default(),
            dense_every_days: 5,
            plan_span: None,
            enforce_plan_span: false,
            choices: Choices::default(),
            faults: None,
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

/// What the document leaves open; see the table in the room's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choices {
    pub bounds: Bounds,
    /// Events in a page when the request names no `limit`.
    pub default_limit: usize,
    /// Order of `history` and `history/devices` when the request names no `desc`.
    pub default_desc: bool,
    /// A larger `limit` is refused with 400.
    pub limit_max: usize,
    /// The same for the deprecated per-computer history.
    pub device_limit_max: usize,
    /// Silently gives at most so many events a page, whatever `limit` says.
    pub page_cap: Option<usize>,
    pub has_more: HasMore,
    pub next_offset: NextOffset,
    pub order: Order,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            bounds: Bounds::WHOLE_SECOND,
            default_limit: 100,
            default_desc: true,
            limit_max: 1001,
            device_limit_max: 100,
            page_cap: None,
            has_more: HasMore::Honest,
            next_offset: NextOffset::Honest,
            order: Order::ByTime,
        }
    }
}

/// How an event's time becomes the whole seconds that `startTime` and `stopTime` are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Not at all: only an event at exactly x.000 is in the last second.
    Exact,
    Down,
    Up,
    Nearest,
}

/// One reading of "inclusive".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub rounding: Rounding,
    /// An event on `startTime` itself is left out.
    pub start_open: bool,
    /// An event on `stopTime` itself is left out.
    pub stop_open: bool,
}

impl Bounds {
    /// The whole of the last second is included: x.999 too.
    pub const WHOLE_SECOND: Bounds = Bounds { rounding: Rounding::Down, start_open: false, stop_open: false };
    /// Of the last second only x.000 is included.
    pub const EXACT: Bounds = Bounds { rounding: Rounding::Exact, start_open: false, stop_open: false };

    /// The first nanosecond that a range from `start` includes.
    pub(super) fn first_nano(self, start: i64) -> i64 {
        self.reaching(start, self.start_open)
    }

    /// The first nanosecond past a range up to `stop`.
    pub(super) fn end_nano(self, stop: i64) -> i64 {
        self.reaching(stop, !self.stop_open)
    }

    /// The first nanosecond whose rounded time is at least (`past`: more than) `second`.
    fn reaching(self, second: i64, past: bool) -> i64 {
        let nanos = |seconds: i64| seconds.saturating_mul(1_000_000_000);
        let next = second.saturating_add(i64::from(past));
        match self.rounding {
            Rounding::Exact => nanos(second).saturating_add(i64::from(past)),
            Rounding::Down => nanos(next),
            Rounding::Up => nanos(next.saturating_sub(1)).saturating_add(1),
            Rounding::Nearest => nanos(next).saturating_sub(500_000_000),
        }
    }
}

/// What `hasMoreEvents` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HasMore {
    Honest,
    AlwaysTrue,
    AlwaysFalse,
    Missing,
}

/// What `nextOffset` says; honest, it stands only beside a true `hasMoreEvents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextOffset {
    Honest,
    Missing,
    Zero,
    /// The offset that was asked for: the walk would stand still.
    Stuck,
    Backwards,
}

/// The order of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    ByTime,
    /// Every two neighbours of the list are swapped: one stable list, not in time order.
    NeighboursSwapped,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule itself, in its plain form: round, then compare.
    fn includes(bounds: Bounds, start: i64, stop: i64, nanos: i64) -> bool {
        const S: i64 = 1_000_000_000;
        let (at, unit) = match bounds.rounding {
            Rounding::Exact => (nanos, S),
            Rounding::Down => (nanos.div_euclid(S), 1),
            Rounding::Up => ((nanos + S - 1).div_euclid(S), 1),
            Rounding::Nearest => ((nanos + S / 2).div_euclid(S), 1),
        };
        let after = if bounds.start_open { at > start * unit } else { at >= start * unit };
        let before = if bounds.stop_open { at < stop * unit } else { at <= stop * unit };
        after && before
    }

    #[test]
    fn all_sixteen_readings_agree_with_rounding_and_comparing() {
        let steps = [0, 1, 499_999_999, 500_000_000, 500_000_001, 999_000_000, 999_999_999];
        for rounding in [Rounding::Exact, Rounding::Down, Rounding::Up, Rounding::Nearest] {
            for (start_open, stop_open) in [(false, false), (false, true), (true, false), (true, true)] {
                let bounds = Bounds { rounding, start_open, stop_open };
                for nanos in (8..14).flat_map(|second| steps.map(|step| second * 1_000_000_000 + step)) {
                    let range = bounds.first_nano(10)..bounds.end_nano(12);
                    assert_eq!(range.contains(&nanos), includes(bounds, 10, 12, nanos), "{bounds:?} {nanos}");
                }
            }
        }
    }

    #[test]
    fn the_last_second_is_whole_or_a_moment() {
        let late = 12_999_000_000;
        assert!(late < Bounds::WHOLE_SECOND.end_nano(12) && late >= Bounds::EXACT.end_nano(12));
    }
}

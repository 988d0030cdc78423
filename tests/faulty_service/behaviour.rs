//! The service's interpretation of open points in its interface, and its false claims.

use std::fmt;

pub const SECOND: i128 = 1_000_000_000;

/// How the service rounds an event's time before it compares it with a bound in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    Exact,
    Floor,
    Ceil,
    Round,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    pub edge: Edge,
    pub inclusive: bool,
}

impl Bound {
    pub const EXACT: Bound = Bound { edge: Edge::Exact, inclusive: true };

    fn seen(self, at: i128) -> i128 {
        match self.edge {
            Edge::Exact => at,
            Edge::Floor => at.div_euclid(SECOND) * SECOND,
            Edge::Ceil => (at + SECOND - 1).div_euclid(SECOND) * SECOND,
            Edge::Round => (at + SECOND / 2).div_euclid(SECOND) * SECOND,
        }
    }

    pub fn starts(self, at: i128, start: i64) -> bool {
        let (at, start) = (self.seen(at), i128::from(start) * SECOND);
        at > start || (self.inclusive && at == start)
    }

    pub fn stops(self, at: i128, stop: i64) -> bool {
        let (at, stop) = (self.seen(at), i128::from(stop) * SECOND);
        at < stop || (self.inclusive && at == stop)
    }

    /// All eight interpretations of one bound.
    pub fn all() -> impl Iterator<Item = Bound> {
        let edges = [Edge::Exact, Edge::Floor, Edge::Ceil, Edge::Round];
        edges.into_iter().flat_map(|edge| [true, false].map(|inclusive| Bound { edge, inclusive }))
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.edge, if self.inclusive { "inclusive" } else { "exclusive" })
    }
}

/// `hasMoreEvents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    True,
    Always(bool),
    Absent,
    Null,
}

/// `nextOffset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    True,
    /// The requested offset.
    Stuck,
    /// An offset before the requested one.
    Backwards,
    Null,
    Zero,
    Absent,
    /// A text with a number far ahead.
    Absurd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Time,
    /// Newest first although the request wants oldest first.
    NewestFirst,
    /// Shuffled, but always the same.
    Scattered,
}

/// The `Date` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dates {
    Clock,
    Absent,
    Garbage,
    /// The service's clock plus this many seconds.
    Off(i64),
}

#[derive(Debug, Clone)]
pub struct Behaviour {
    pub start: Bound,
    pub stop: Bound,
    /// The service refuses a larger `limit` with 400.
    pub limit_max: usize,
    /// The longest page, whatever the request's limit.
    pub cap: Option<usize>,
    pub more: More,
    pub next: Next,
    pub order: Order,
    pub dates: Dates,
    /// Whether `history/devices` exists.
    pub team_connections: bool,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            start: Bound::EXACT,
            stop: Bound::EXACT,
            limit_max: 1001,
            cap: None,
            more: More::True,
            next: Next::True,
            order: Order::Time,
            dates: Dates::Clock,
            team_connections: true,
        }
    }
}

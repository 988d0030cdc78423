//! One team: its people and computers, and its three streams.

use std::sync::{Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard};

use crate::model::{DeviceId, Instant, Stream};

use super::activity::{self, ActivityRecord};
use super::admin::{TeamState, follow_seasons, found};
use super::billing;
use super::cast::Cast;
use super::config::SandboxConfig;
use super::overlay::{Extra, insert_by_time};
use super::seed::mix2;
use super::sessions::{self, ConnectionKind, ConnectionRecord, DAY_MS, traits};
use super::shelf::{ByComputer, Record, Shelf};

/// The days of a team's history, and the moment before which all generated events lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub first_day: i64,
    pub last_day: i64,
    pub horizon: Instant,
    /// Ages such as "recently used" count back from this moment.
    pub end: Instant,
}

pub(super) struct Team {
    pub cast: Cast,
    pub created_at: Instant,
    pub connections: Shelf<ConnectionRecord>,
    pub activity: Shelf<ActivityRecord>,
    /// Sorted by time.
    billing: RwLock<Vec<Extra>>,
    end: Instant,
    /// Made at its first use, because a sandbox may have thousands of teams.
    state: OnceLock<Mutex<TeamState>>,
}

impl Record for ConnectionRecord {
    fn at(self) -> Instant {
        Instant::from_nanos(self.at_ms() * 1_000_000)
    }

    fn name(self) -> u64 {
        mix2(self.session.number(), self.step())
    }
}

impl Record for ActivityRecord {
    fn at(self) -> Instant {
        Instant::from_nanos(self.at_nanos)
    }

    fn name(self) -> u64 {
        self.name
    }
}

impl Team {
    pub(super) fn generate(config: &SandboxConfig, number: u32, span: Span) -> Self {
        let cast = Cast::new(config, number);
        let mean = config.sessions_per_day;
        let mut connections = Vec::new();
        let mut activity = Vec::new();
        for day in span.first_day..=span.last_day {
            sessions::plan_day(&cast, day, mean, config.dense_every_days, &mut connections);
            activity::plan_day(&cast, day, mean, config.dense_every_days, &mut activity);
        }
        connections.retain(|record| config.odd_events || record.kind() != ConnectionKind::Unknown);
        settle(&mut connections, span.horizon);
        settle(&mut activity, span.horizon);
        let places = connections.iter().map(|record| traits(&cast, record.session).computer).collect();
        let by_computer = ByComputer::new(places, cast.computers.len());
        let billing = billing::plan(&cast, span.first_day, span.last_day, span.horizon);
        Self {
            created_at: Instant::from_nanos((span.first_day * DAY_MS - 30 * DAY_MS) * 1_000_000),
            connections: Shelf::new(connections, by_computer, config.lateness, cast.seed),
            activity: Shelf::new(activity, ByComputer::default(), config.lateness, cast.seed ^ 1),
            billing: RwLock::new(billing),
            end: span.end,
            state: OnceLock::new(),
            cast,
        }
    }

    pub(super) fn billing(&self) -> RwLockReadGuard<'_, Vec<Extra>> {
        self.billing.read().expect("BUG: nothing panics while it holds the billing entries")
    }

    pub(super) fn insert(&self, stream: Stream, extra: Extra) {
        match stream {
            Stream::Activity => self.activity.insert(extra),
            Stream::Connections => self.connections.insert(extra),
            Stream::Billing => {
                let mut entries = self.billing.write().expect("BUG: nothing panics while it holds the billing entries");
                insert_by_time(&mut entries, extra);
            }
        }
    }

    /// The team's state, with the members who join and leave as of `at`.
    pub(super) fn state(&self, at: Instant) -> MutexGuard<'_, TeamState> {
        let state = self.state.get_or_init(|| Mutex::new(found(&self.cast, self.created_at.seconds(), self.end)));
        let mut state = state.lock().expect("BUG: nothing panics while it holds a team's state");
        follow_seasons(&self.cast, &mut state, at, self.end);
        state
    }

    /// Whether the team has a state that may differ from the seed's.
    pub(super) fn is_looked_at(&self) -> bool {
        self.state.get().is_some()
    }

    pub(super) fn restore_billing(&self, entries: Vec<Extra>) {
        *self.billing.write().expect("BUG: nothing panics while it holds the billing entries") = entries;
    }

    /// Deletes a computer's connection history.
    pub(super) fn forget_computer(&self, id: &DeviceId, now: Instant) {
        match self.cast.computer_place(id) {
            Some(place) => {
                self.connections.remove_computer(place, id, now);
            }
            None => self.connections.withdraw_extras_of(id, now),
        }
    }
}

/// Drops the records from the horizon on, and sorts the others.
fn settle<R: Record>(records: &mut Vec<R>, horizon: Instant) {
    records.retain(|record| record.at() < horizon);
    records.sort_unstable();
    records.shrink_to_fit();
}

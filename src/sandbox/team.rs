//! One team: its people and computers, and its three streams.

use std::sync::OnceLock;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

use crate::model::{DeviceId, Instant, Stream};

use super::activity;
use super::activity_record::ActivityRecord;
use super::admin::{TeamState, apply_turnover, initial_state};
use super::billing;
use super::config::SandboxConfig;
use super::overlay::{TextEvent, insert_by_time};
use super::records::{ByComputer, Record};
use super::roster::Roster;
use super::sessions::{self, ConnectionKind, ConnectionRecord, DAY_MS, traits};
use super::stream_store::StreamStore;

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
    pub roster: Roster,
    pub created_at: Instant,
    pub connections: StreamStore<ConnectionRecord>,
    pub activity: StreamStore<ActivityRecord>,
    /// Sorted by time.
    billing: RwLock<Vec<TextEvent>>,
    end: Instant,
    /// Made at its first use, because a sandbox may have thousands of teams.
    state: OnceLock<Mutex<TeamState>>,
}

impl Team {
    pub(super) fn generate(config: &SandboxConfig, number: u32, span: Span) -> Self {
        let roster = Roster::new(config, number);
        let mean = config.sessions_per_day;
        let mut connections = Vec::new();
        let mut activity = Vec::new();
        for day in span.first_day..=span.last_day {
            sessions::plan_day(&roster, day, mean, config.dense_every_days, &mut connections);
            activity::plan_day(&roster, day, mean, config.dense_every_days, &mut activity);
        }
        connections.retain(|record| config.odd_events || record.kind() != ConnectionKind::Unknown);
        settle(&mut connections, span.horizon);
        settle(&mut activity, span.horizon);
        let places = connections.iter().map(|record| traits(&roster, record.session).computer).collect();
        let by_computer = ByComputer::new(places, roster.computers.len());
        let billing = billing::plan(&roster, span.first_day, span.last_day, span.horizon);
        Self {
            created_at: Instant::from_nanos((span.first_day * DAY_MS - 30 * DAY_MS) * 1_000_000),
            connections: StreamStore::new(connections, by_computer, config.lateness, roster.seed),
            activity: StreamStore::new(activity, ByComputer::default(), config.lateness, roster.seed ^ 1),
            billing: RwLock::new(billing),
            end: span.end,
            state: OnceLock::new(),
            roster,
        }
    }

    pub(super) fn billing(&self) -> RwLockReadGuard<'_, Vec<TextEvent>> {
        self.billing.read()
    }

    pub(super) fn insert(&self, stream: Stream, extra: TextEvent) {
        match stream {
            Stream::Activity => self.activity.insert(extra),
            Stream::Connections => self.connections.insert(extra),
            Stream::Billing => {
                let mut entries = self.billing.write();
                insert_by_time(&mut entries, extra);
            }
        }
    }

    /// The team's state, with the members who join and leave as of `at`.
    pub(super) fn state(&self, at: Instant) -> MutexGuard<'_, TeamState> {
        let state =
            self.state.get_or_init(|| Mutex::new(initial_state(&self.roster, self.created_at.seconds(), self.end)));
        let mut state = state.lock();
        apply_turnover(&self.roster, &mut state, at, self.end);
        state
    }

    /// Whether the team has a state that may differ from the seed's.
    pub(super) fn has_state(&self) -> bool {
        self.state.get().is_some()
    }

    pub(super) fn restore_billing(&self, entries: Vec<TextEvent>) {
        *self.billing.write() = entries;
    }

    /// Deletes a computer's connection history.
    pub(super) fn forget_computer(&self, id: &DeviceId, now: Instant) {
        match self.roster.computer_place(id) {
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

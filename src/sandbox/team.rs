//! One team: its people and computers, and its three streams.

use std::sync::{RwLock, RwLockReadGuard};

use crate::model::{DeviceId, Instant, Stream};

use super::activity::{self, ActivityRecord};
use super::billing;
use super::cast::{Cast, Person};
use super::config::SandboxConfig;
use super::json::push_string;
use super::overlay::{Extra, insert_by_time};
use super::seed::mix2;
use super::sessions::{self, ConnectionRecord, DAY_MS, traits};
use super::shelf::{ByComputer, Record, Shelf};

/// The days that a team's history is made of, and the moment that no made event reaches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub first_day: i64,
    pub last_day: i64,
    pub horizon: Instant,
}

/// Someone who is on the team at a moment.
pub(super) struct Member<'a> {
    pub person: &'a Person,
    pub role: &'static str,
    /// Only of those who come and go.
    pub joined_at: Option<Instant>,
}

pub(super) struct Team {
    pub cast: Cast,
    pub created_at: Instant,
    pub connections: Shelf<ConnectionRecord>,
    pub activity: Shelf<ActivityRecord>,
    /// Sorted by time.
    billing: RwLock<Vec<Extra>>,
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
        let cast = Cast::new(config.seed, number, config.people_per_team, config.computers_per_team);
        let mean = config.sessions_per_day;
        let mut connections = Vec::new();
        let mut activity = Vec::new();
        for day in span.first_day..=span.last_day {
            sessions::plan_day(&cast, day, mean, config.dense_every_days, &mut connections);
            activity::plan_day(&cast, day, mean, config.dense_every_days, &mut activity);
        }
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

    /// Removes a computer with its connection history, and tells so in the activity. False: it is not on the team.
    pub(super) fn remove_computer(&self, id: &DeviceId, now: Instant) -> bool {
        let Some(place) = self.cast.computer_place(id) else { return false };
        if !self.connections.remove_computer(place, id, now) {
            return false;
        }
        let admin = &self.cast.people[0];
        let mut raw =
            format!("{{\"header\":{{\"eventTimestampUnixNano\":{},\"tokenInfo\":{{", now.nanos()).into_bytes();
        for (name, value) in [("\"userID\":", &admin.id), (",\"email\":", &admin.email)] {
            raw.extend_from_slice(name.as_bytes());
            push_string(&mut raw, value);
        }
        raw.extend_from_slice(b"}},\"teamDeviceRemovedEvent\":{\"deviceID\":");
        push_string(&mut raw, id.as_str());
        raw.extend_from_slice(b",\"name\":");
        push_string(&mut raw, &self.cast.computers[place as usize].name);
        raw.extend_from_slice(b"}}");
        self.activity.insert(Extra::new(raw, now, None, now));
        true
    }

    /// The people who are on the team at a moment.
    pub(super) fn members(&self, at: Instant) -> impl Iterator<Item = Member<'_>> {
        let staying = self.cast.people.iter().map(|person| Member { person, role: person.role, joined_at: None });
        let coming = self.cast.seasonal.iter().filter_map(move |seen| {
            let joined_at = seen.joined_at(at)?;
            Some(Member { person: &seen.person, role: seen.role_at(at), joined_at: Some(joined_at) })
        });
        staying.chain(coming)
    }

    /// The computers that are on the team now, with their places.
    pub(super) fn computers(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).take(self.cast.computers.len()).filter(|&place| !self.connections.is_removed(place))
    }

    /// The place of a computer that is on the team now.
    pub(super) fn computer(&self, id: &DeviceId) -> Option<u32> {
        self.cast.computer_place(id).filter(|&place| !self.connections.is_removed(place))
    }
}

/// Cuts a plan at the horizon and puts it in order.
fn settle<R: Record>(records: &mut Vec<R>, horizon: Instant) {
    records.retain(|record| record.at() < horizon);
    records.sort_unstable();
    records.shrink_to_fit();
}

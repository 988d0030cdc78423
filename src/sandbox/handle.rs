//! A handle with which tests and demonstrations control and inspect a running sandbox.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::model::{DeviceId, Instant, Stream, TeamId};

use super::admin::AdminRequest;
use super::choices::Choices;
use super::fault::FaultHook;
use super::overlay::TextEvent;
use super::routes::Op;
use super::saved::Saved;
use super::team::Team;
use super::tokens::{Bearer, Role};
use super::truth::Truth;
use super::world::World;

/// An event that a test inserts, with any bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertedEvent {
    /// The bytes that the sandbox serves between two commas: JSON, or deliberately invalid.
    pub raw: Bytes,
    /// The time that orders it in the stream; the bytes may say another time.
    pub at: Instant,
    /// For a connection event: the computer whose history holds it.
    pub device: Option<DeviceId>,
    /// The first time at which the sandbox serves it; `None`: now.
    pub visible_from: Option<Instant>,
}

/// Controls a running sandbox. All clones control the same sandbox.
#[derive(Clone)]
pub struct SandboxHandle(Arc<World>);

impl SandboxHandle {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self(world)
    }

    pub(super) fn world(&self) -> &World {
        &self.0
    }

    /// The sandbox's clock, which the `Date` headers show.
    pub fn now(&self) -> Instant {
        self.0.clock.now()
    }

    /// Moves the clock forward. Events up to the new time become visible.
    pub fn advance(&self, by: Duration) {
        self.0.clock.advance(by);
    }

    /// Sets the clock, also back.
    pub fn set_now(&self, now: Instant) {
        self.0.clock.set(now);
    }

    /// The time of the last generated event, without the days ahead.
    pub fn end(&self) -> Instant {
        self.0.end
    }

    pub fn choices(&self) -> Choices {
        self.0.choices()
    }

    pub fn set_choices(&self, choices: Choices) {
        self.0.set_choices(choices);
    }

    pub fn set_faults(&self, faults: Option<FaultHook>) {
        self.0.set_faults(faults);
    }

    /// The state that a later sandbox needs to continue from here.
    pub fn saved(&self) -> Saved {
        Saved::of(&self.0)
    }

    /// How many requests have come so far, refused ones too.
    pub fn requests(&self) -> u64 {
        self.0.requests()
    }

    /// The team's current computers; none for an unknown team.
    pub fn devices(&self, team: &TeamId) -> Vec<DeviceId> {
        let Some(team) = self.team(team) else { return Vec::new() };
        let state = team.state(self.0.roster_at());
        state.devices.iter().map(|device| DeviceId::from(device.id.as_str())).collect()
    }

    /// How many events of a stream are visible now. For billing it counts all, not only the ten newest.
    pub fn visible(&self, team: &TeamId, stream: Stream) -> u64 {
        let (Some(team), now) = (self.team(team), self.now()) else { return 0 };
        match stream {
            Stream::Activity => team.activity.visible(now),
            Stream::Connections => team.connections.visible(now),
            Stream::Billing => team.billing().iter().filter(|entry| entry.is_visible(now)).count() as u64,
        }
    }

    /// Every event of a stream that has existed until now. An unknown team has none.
    pub fn truth(&self, team: &TeamId, stream: Stream) -> impl Iterator<Item = super::TruthEvent> + use<> {
        self.team(team).map(|team| Truth::new(Arc::clone(team), stream, self.now())).into_iter().flatten()
    }

    /// Inserts an event at its time. Returns false for an unknown team.
    pub fn insert(&self, team: &TeamId, stream: Stream, event: InsertedEvent) -> bool {
        let Some(team) = self.team(team) else { return false };
        let visible_from = event.visible_from.unwrap_or_else(|| self.now());
        team.insert(stream, TextEvent::new(event.raw, event.at, event.device, visible_from));
        true
    }

    /// For tests: removes a computer. Its connection history disappears at once, and activity gets an event. Returns false if
    /// the computer is not on the team.
    pub fn remove_device(&self, team: &TeamId, device: &DeviceId) -> bool {
        let Some(team) = self.team(team) else { return false };
        let bearer = Bearer { role: Role::Admin, person: None };
        let (ids, body) = ([device.as_str().to_owned()], serde_json::Map::new());
        let request = AdminRequest { op: Op::RemoveDevice, ids: &ids, query: &[], body: &body };
        self.0.caller(team, &bearer).and_then(|caller| self.0.administer(team, &caller, &request)).is_ok()
    }

    /// Deletes the events of `[from, end)` without any activity event, and returns their number. Billing entries stay.
    pub fn withdraw(&self, team: &TeamId, stream: Stream, from: Instant, end: Instant) -> u64 {
        let Some(team) = self.team(team) else { return 0 };
        match stream {
            Stream::Activity => team.activity.withdraw(from, end, self.now()),
            Stream::Connections => team.connections.withdraw(from, end, self.now()),
            Stream::Billing => 0,
        }
    }

    fn team(&self, id: &TeamId) -> Option<&Arc<Team>> {
        self.0.team(id.as_str())
    }
}

//! The service's data, and the truth: every event that ever existed, with its bytes.

use std::collections::HashSet;

use super::behaviour::{Behaviour, SECOND};
use super::events;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Activity,
    Connections,
    Billing,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Activity, Kind::Connections, Kind::Billing];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Activity => "activity",
            Kind::Connections => "connections",
            Kind::Billing => "billing",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Event {
    /// The number of the event, in the order of creation.
    pub number: u64,
    pub kind: Kind,
    pub device: Option<String>,
    /// The time by which the service lists the event, in nanoseconds since the epoch; its text may say another time.
    pub at: i128,
    pub text: String,
    /// The text that the archive may keep, without secrets.
    pub kept: String,
    /// Whether the service lists the event now.
    pub alive: bool,
    /// Whether a complete answer ever held the event.
    pub served: bool,
    /// The number of the last request whose answer held the event.
    pub served_by: Option<usize>,
    /// How often a list shows the event. 0: no page has it, but offsets and limits count it.
    pub shown: usize,
    /// Whether the event disappeared with its computer. A gap records such a loss.
    pub removed: bool,
}

#[derive(Debug, Clone)]
pub struct Team {
    pub id: String,
    pub name: String,
    pub computers: Vec<String>,
    /// Seconds; `None`: the limited view.
    pub plan_span: Option<i64>,
    pub events: Vec<Event>,
}

pub struct World {
    /// The service's clock, seconds since the epoch.
    pub now: i64,
    pub teams: Vec<Team>,
    pub behaviour: Behaviour,
    /// Tokens that are accepted.
    pub tokens: Vec<String>,
    born: u64,
}

impl World {
    pub fn new(now: i64, token: &str) -> Self {
        let mut world =
            Self { now, teams: Vec::new(), behaviour: Behaviour::default(), tokens: vec![token.to_owned()], born: 0 };
        world.add_team("team-one");
        world
    }

    pub fn add_team(&mut self, id: &str) {
        let computers = (1..=3).map(|n| format!("{id}-computer-{n}")).collect();
        self.teams.push(Team {
            id: id.to_owned(),
            name: format!("Team {id}"),
            computers,
            plan_span: None,
            events: Vec::new(),
        });
    }

    pub fn team(&mut self, id: &str) -> &mut Team {
        self.teams.iter_mut().find(|team| team.id == id).expect("a team of the test")
    }

    /// Adds an event to the first team, with `at` in nanoseconds. Returns its number.
    pub fn add(&mut self, kind: Kind, at: i128, device: Option<&str>, text: String) -> u64 {
        self.add_to(0, kind, at, device, text)
    }

    pub fn add_to(&mut self, team: usize, kind: Kind, at: i128, device: Option<&str>, text: String) -> u64 {
        self.born += 1;
        let (kept, device, number) = (text.clone(), device.map(str::to_owned), self.born);
        let event = Event {
            number,
            kind,
            device,
            at,
            text,
            kept,
            alive: true,
            served: false,
            served_by: None,
            shown: 1,
            removed: false,
        };
        self.teams[team].events.push(event);
        number
    }

    /// A connection event on the first computer, `millis` after the second `at`.
    pub fn connection(&mut self, at: i64, millis: i64) -> u64 {
        self.connection_of(0, 0, at, millis)
    }

    pub fn connection_of(&mut self, team: usize, computer: usize, at: i64, millis: i64) -> u64 {
        let device = self.teams[team].computers[computer].clone();
        let text = events::connection(self.born + 1, at * 1000 + millis, &device);
        self.add_to(
            team,
            Kind::Connections,
            i128::from(at) * SECOND + i128::from(millis) * 1_000_000,
            Some(&device),
            text,
        )
    }

    /// An activity event, `nanos` after the second `at`.
    pub fn activity(&mut self, at: i64, nanos: i64) -> u64 {
        self.activity_of(0, at, nanos)
    }

    pub fn activity_of(&mut self, team: usize, at: i64, nanos: i64) -> u64 {
        let text = events::activity(self.born + 1, at * 1_000_000_000 + nanos);
        self.add_to(team, Kind::Activity, i128::from(at) * SECOND + i128::from(nanos), None, text)
    }

    /// Some events of every kind on the days `first..last` after `day`: the history of an ordinary team.
    pub fn fill(&mut self, day: i64, days: std::ops::Range<i64>) {
        for day in days.map(|n| day + n * 86_400) {
            for n in 0..12 {
                self.connection_of(0, usize::try_from(n % 3).unwrap(), day + 3_600 + n * 4_000, n * 83);
                self.activity(day + 1_800 + n * 6_000, n * 77_777_777);
            }
            self.billing(day + 40_000);
        }
    }

    pub fn billing(&mut self, at: i64) -> u64 {
        let text = events::billing(self.born + 1, at, "userCountUpdated");
        self.add(Kind::Billing, i128::from(at) * SECOND, None, text)
    }

    /// Another event with the same bytes.
    pub fn twin(&mut self, number: u64) -> u64 {
        let event = self.event(number).clone();
        self.add(event.kind, event.at, event.device.as_deref(), event.text)
    }

    /// Replaces an event's bytes.
    pub fn edit(&mut self, number: u64, change: impl FnOnce(&str) -> String) -> u64 {
        let event = self.event(number).clone();
        self.event(number).alive = false;
        let text = change(&event.text);
        assert_ne!(text, event.text, "an edit changes something");
        self.add(event.kind, event.at, event.device.as_deref(), text)
    }

    pub fn delete(&mut self, number: u64) {
        self.event(number).alive = false;
    }

    /// The events that complete answers have held so far.
    pub fn served(&self) -> HashSet<u64> {
        let events = self.teams.iter().flat_map(|team| &team.events);
        events.filter(|event| event.served).map(|event| event.number).collect()
    }

    /// Forgets a killed run's answers, because the run may not have committed them.
    pub fn recall_served(&mut self, before: &HashSet<u64>) {
        for event in self.teams.iter_mut().flat_map(|team| &mut team.events) {
            event.served &= before.contains(&event.number);
        }
    }

    pub fn event(&mut self, number: u64) -> &mut Event {
        // Each team's events are in the order of creation.
        let place = |events: &[Event]| events.binary_search_by_key(&number, |event| event.number).ok();
        let mut held = self.teams.iter_mut().map(|team| (place(&team.events), team));
        let (place, team) = held.find_map(|(place, team)| Some((place?, team))).expect("an event of the test");
        &mut team.events[place]
    }

    /// Removes a computer of the first team at the second `at`: its history disappears, and activity shows the removal.
    pub fn remove_computer(&mut self, device: &str, at: i64, is_shown: bool) {
        let team = &mut self.teams[0];
        team.computers.retain(|id| id != device);
        for event in team.events.iter_mut().filter(|event| event.device.as_deref() == Some(device)) {
            (event.alive, event.removed) = (false, true);
        }
        if is_shown {
            let text = events::removal(self.born + 1, at * 1_000_000_000, device);
            self.add(Kind::Activity, i128::from(at) * SECOND, None, text);
        }
    }

    /// Like [`World::remove_computer`], with `payload` in the activity event.
    pub fn remove_computer_saying(&mut self, device: &str, at: i64, payload: &str) {
        self.remove_computer(device, at, false);
        let text = events::activity_event("teamDeviceRemovedEvent", at * 1_000_000_000, payload);
        self.add(Kind::Activity, i128::from(at) * SECOND, None, text);
    }
}

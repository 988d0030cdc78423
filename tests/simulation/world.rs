//! The truth: every event that ever existed, with its bytes, its time, its computer, and when it was to be seen.

use annals::model::{Digest, Stream, TeamId};

use super::draw::Draw;
use super::faults::Fault;
use super::plan::{DAY, Plan};
use super::spoil;
use super::texts::{self, Step};

pub const NANO: i64 = 1_000_000_000;
pub const NEVER: i64 = i64::MAX;

/// Why an event is not served any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// By itself: nothing tells of it.
    Deleted,
    /// With its computer.
    Removed,
    /// Another body took its place.
    Edited,
}

/// Times are nanoseconds since the epoch.
#[derive(Debug, Clone)]
pub struct Event {
    pub number: u32,
    pub stream: Stream,
    pub device: Option<usize>,
    /// Where the service lists it; its text may say otherwise.
    pub at: i64,
    pub text: String,
    /// Of the text as it may be kept.
    pub digest: Digest,
    pub has_id: bool,
    pub from: i64,
    pub until: i64,
    pub gone: Option<Gone>,
    /// How often a list shows it.
    pub shown: usize,
    /// Counted when it is first served.
    pub fault: Option<Fault>,
    /// It appears when somebody turns a page over its place.
    pub is_waiting: bool,
    /// It is deleted when somebody turns a page over its place.
    pub is_doomed: bool,
    /// Between these, two bodies take turns: this is the first, or the second.
    pub flaps: Option<(i64, i64, bool)>,
    /// When an answer first held it that was about its own place.
    pub served: Option<i64>,
}

#[derive(Debug, Clone)]
pub struct Device {
    pub id: String,
    /// From when to when it is listed.
    pub added: i64,
    pub removed: i64,
    /// Activity tells of its removal.
    pub is_told: bool,
}

pub struct Team {
    pub id: TeamId,
    pub devices: Vec<Device>,
    /// By stream, in the order of their places.
    pub lists: [Vec<Event>; 3],
}

impl Team {
    pub fn device(&self, id: &str) -> Option<usize> {
        self.devices.iter().position(|device| device.id == id)
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.lists.iter().flatten()
    }
}

/// A team in the making.
pub struct Draft<'p> {
    pub plan: &'p Plan,
    pub devices: Vec<Device>,
    pub events: Vec<Event>,
    pub name: String,
    born: u32,
}

pub fn teams(plan: &Plan) -> Vec<Team> {
    (0..plan.teams).map(|n| team(plan, n)).collect()
}

fn team(plan: &Plan, n: usize) -> Team {
    let mut draw = Draw::of(plan.seed, &format!("team {n}"));
    let name = format!("team-{n}");
    let device = |d| Device { id: format!("{name}-d{d}"), added: i64::MIN, removed: NEVER, is_told: false };
    let devices = (0..draw.count(2, 5)).map(device).collect();
    let mut draft = Draft { plan, devices, events: Vec::new(), name: name.clone(), born: 0 };
    let history = draw.between(2, 6);
    for day in plan.start / DAY - history..=plan.calm_from / DAY {
        draft.day(day * DAY, &mut draw);
    }
    for fault in &plan.faults {
        spoil::spoil(&mut draft, *fault, &mut Draw::of(plan.seed, &format!("{} in {n}", fault.id())));
    }
    draft.remove_computers();
    let mut lists: [Vec<Event>; 3] = Default::default();
    draft.events.sort_by_key(|event| (event.at, event.number));
    for event in draft.events {
        lists[event.stream as usize].push(event);
    }
    Team { id: TeamId::new(name), devices: draft.devices, lists }
}

impl Draft<'_> {
    /// One day of an ordinary team: some clusters of sessions, and what is changed meanwhile.
    fn day(&mut self, day: i64, draw: &mut Draw) {
        for _ in 0..draw.count(0, 4) {
            let begin = (day + draw.between(0, DAY)) * NANO + draw.between(0, NANO);
            for _ in 0..draw.count(1, 4) {
                self.session(begin, draw);
            }
            if draw.is(60) {
                let at = begin + draw.between(0, 600 * NANO);
                let name = draw.pick(&["teamUserAddedEvent", "teamSettingsChangedEvent", "teamUserLoggedInEvent"]);
                let text = texts::activity(name, &at.to_string(), self.next());
                self.add(Stream::Activity, at, None, text, false);
            }
            if draw.is(20) {
                self.billing(begin, draw.pick(&["userCountUpdated", "paymentSucceeded"]));
            }
        }
        if draw.is(3) {
            let at = (day + draw.between(0, DAY)) * NANO;
            let text = texts::secret(at, self.next());
            self.add(Stream::Activity, at, None, text, false);
        }
    }

    fn session(&mut self, begin: i64, draw: &mut Draw) {
        let device = draw.count(0, self.devices.len());
        let connection = format!("{}-c{}", self.name, self.born);
        let mut at = begin / 1_000_000 * 1_000_000;
        let steps: &[usize] =
            draw.pick(&[&[0, 1, 2, 4][..], &[0, 1, 4], &[0, 1, 3, 2, 4], &[0, 3], &[1, 4], &[0, 1, 2]]);
        for kind in steps {
            self.step(&connection, *kind, at, device);
            at += draw.between(0, 400_000) * 1_000_000;
        }
    }

    /// `at` is whole milliseconds.
    pub fn step(&mut self, connection: &str, kind: usize, at: i64, device: usize) -> usize {
        let number = self.next();
        let (id, of) = (format!("{}-e{number}", self.name), self.devices[device].id.clone());
        let device_id = (!self.plan.is_old).then_some(of.as_str());
        let step = Step { id: &id, connection, kind, at: at / 1_000_000, device: device_id, number };
        let text = step.text();
        self.add(Stream::Connections, at, Some(device), text, true)
    }

    pub fn billing(&mut self, at: i64, name: &str) -> usize {
        let at = at / NANO * NANO;
        let number = self.next();
        self.add(Stream::Billing, at, None, texts::billing(Some(number), at / NANO, name), true)
    }

    pub fn next(&mut self) -> u32 {
        self.born += 1;
        self.born
    }

    /// What came before the first day was there from its own time on.
    pub fn add(&mut self, stream: Stream, at: i64, device: Option<usize>, text: String, has_id: bool) -> usize {
        let number = self.next();
        let delay = i64::from(number % 4) * NANO / 2;
        let digest = Digest::of(texts::kept(&text).as_bytes());
        self.events.push(Event {
            number,
            stream,
            device,
            at,
            text,
            digest,
            has_id,
            from: at + delay,
            until: if at >= self.plan.calm_from * NANO { at } else { NEVER },
            gone: None,
            shown: 1,
            fault: None,
            is_waiting: false,
            is_doomed: false,
            flaps: None,
            served: None,
        });
        self.events.len() - 1
    }

    /// What a computer's history held goes with it, and it connects no more.
    fn remove_computers(&mut self) {
        for (n, device) in self.devices.iter().enumerate().filter(|(_, device)| device.removed < NEVER) {
            for event in self.events.iter_mut().filter(|event| event.device == Some(n)) {
                if event.until > device.removed {
                    (event.until, event.gone) = (device.removed, Some(Gone::Removed));
                }
            }
        }
    }
}

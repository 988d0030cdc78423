//! The truth: every event that ever existed, with its bytes, time, computer, and the time in which the service shows
//! it.

use annals::model::{Digest, Stream, TeamId};

use super::event_faults;
use super::faults::Fault;
use super::plan::{DAY, Plan};
use super::random::Draw;
use super::texts::{self, Step};

pub const NANO: i64 = 1_000_000_000;
pub const NEVER: i64 = i64::MAX;

/// Why an event disappeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    /// The event was deleted alone, without any notice.
    Deleted,
    /// The event was deleted with its computer.
    Removed,
    /// Another body replaced the event.
    Edited,
}

/// Times are nanoseconds since the epoch.
#[derive(Debug, Clone)]
pub struct Event {
    pub number: u32,
    pub stream: Stream,
    pub device: Option<usize>,
    /// The time by which the service lists the event; its text may say another time.
    pub at: i64,
    pub text: String,
    /// The digest of the text that the archive may keep.
    pub digest: Digest,
    pub has_id: bool,
    pub from: i64,
    pub until: i64,
    pub gone: Option<LossReason>,
    /// How often a list shows the event.
    pub shown: usize,
    /// The fault to count when the event is first served.
    pub fault: Option<Fault>,
    /// The event appears when a client reads the next page at its position.
    pub is_waiting: bool,
    /// The event is deleted when a client reads the next page at its position.
    pub is_doomed: bool,
    /// In this time two bodies alternate; this is the first or the second.
    pub flaps: Option<(i64, i64, bool)>,
    /// When an answer about its time first held the event.
    pub served: Option<i64>,
}

#[derive(Debug, Clone)]
pub struct Device {
    pub id: String,
    /// The time in which the computer is listed.
    pub added: i64,
    pub removed: i64,
    /// Whether activity shows the removal.
    pub is_shown: bool,
    /// The removal in activity names the computer at a usual place.
    pub is_named: bool,
}

pub struct Team {
    pub id: TeamId,
    pub devices: Vec<Device>,
    /// The events of each stream, in order.
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

/// Builds a team.
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
    let device =
        |d| Device { id: format!("{name}-d{d}"), added: i64::MIN, removed: NEVER, is_shown: false, is_named: false };
    let devices = (0..draw.count(2, 5)).map(device).collect();
    let mut draft = Draft { plan, devices, events: Vec::new(), name: name.clone(), born: 0 };
    let history = draw.between(2, 6);
    for day in plan.start / DAY - history..=plan.calm_from / DAY {
        draft.day(day * DAY, &mut draw);
    }
    for fault in &plan.faults {
        event_faults::spoil(&mut draft, *fault, &mut Draw::of(plan.seed, &format!("{} in {n}", fault.id())));
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
    /// One ordinary day of a team: some clusters of sessions, and some changes.
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

    /// `at` is in whole milliseconds.
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

    /// Events from before the first day are visible from their own time on.
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

    /// Removes a computer: its history disappears, and it has no more connections.
    fn remove_computers(&mut self) {
        for (n, device) in self.devices.iter().enumerate().filter(|(_, device)| device.removed < NEVER) {
            for event in self.events.iter_mut().filter(|event| event.device == Some(n)) {
                if event.until > device.removed {
                    (event.until, event.gone) = (device.removed, Some(LossReason::Removed));
                }
            }
        }
    }
}

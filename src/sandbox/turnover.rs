//! Members who join and leave: each is on the team for 28 of every 40 days, as seed and day determine. They make no
//! connections. Activity has an event for every change. One of them is an admin for some days; one keeps access to a
//! computer after each removal.

use crate::model::Instant;

use super::activity_record::ActivityRecord;
use super::json::{push_int, push_string};
use super::person::Person;
use super::seed::mix2;

const DAY_SECONDS: i64 = 86_400;
const ROUND_DAYS: i64 = 40;
const STAY_DAYS: i64 = 28;
/// Days of a stay on which the second such member is an admin.
const ADMIN_DAYS: std::ops::Range<i64> = 8..18;
/// This bit of an activity record's number marks events of these members.
const SEASON: u64 = 1 << 31;
/// The smallest team with such members.
pub(super) const PEOPLE_MIN: u32 = 5;
pub(super) const TEMPORARY_MEMBERS: u32 = 3;

/// The activity events of a member who joins and leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Added,
    Promoted,
    Demoted,
    Removed,
    /// The person signs in hours after the removal, because one grant was left.
    CameBack,
}

const EVENTS: [Event; 5] = [Event::Added, Event::Promoted, Event::Demoted, Event::Removed, Event::CameBack];

/// A member who joins and leaves.
pub(super) struct TemporaryMember {
    pub person: Person,
    number: u32,
    seed: u64,
}

impl TemporaryMember {
    pub(super) fn new(person: Person, number: u32, seed: u64) -> Self {
        Self { person, number, seed: mix2(seed, 0x5ea5 + u64::from(number)) }
    }

    /// The number of days since the stay began; it counts on until the next stay begins.
    fn phase(&self, day: i64) -> i64 {
        let offset = i64::try_from(self.seed % 13).expect("BUG: less than 13") + i64::from(self.number) * 13;
        (day + offset).rem_euclid(ROUND_DAYS)
    }

    /// The second of the day at which an event happens.
    fn second_of(&self, event: Event, day: i64) -> i64 {
        let hour = match event {
            Event::Added => 8,
            Event::Promoted | Event::Demoted => 11,
            Event::Removed => 15,
            Event::CameBack => 20,
        };
        let minute = i64::try_from(mix2(self.seed, day.unsigned_abs()) % 3_600).expect("BUG: less than an hour");
        day * DAY_SECONDS + hour * 3_600 + minute
    }

    fn happens_on(&self, event: Event, day: i64) -> bool {
        let phase = self.phase(day);
        match event {
            Event::Added => phase == 0,
            Event::Promoted => self.number == 1 && phase == ADMIN_DAYS.start,
            Event::Demoted => self.number == 1 && phase == ADMIN_DAYS.end,
            Event::Removed => phase == STAY_DAYS,
            Event::CameBack => self.number == 2 && phase == STAY_DAYS,
        }
    }

    /// When the stay that includes `at` began; `None` if this person is not on the team at that time.
    pub(super) fn joined_at(&self, at: Instant) -> Option<Instant> {
        let day = at.seconds().div_euclid(DAY_SECONDS);
        let first = day - self.phase(day);
        let from = self.second_of(Event::Added, first);
        let is_there = (from..self.second_of(Event::Removed, first + STAY_DAYS)).contains(&at.seconds());
        is_there.then(|| Instant::from_seconds(from))
    }

    pub(super) fn role_at(&self, at: Instant) -> &'static str {
        let day = at.seconds().div_euclid(DAY_SECONDS);
        let first = day - self.phase(day);
        let from = self.second_of(Event::Promoted, first + ADMIN_DAYS.start);
        let until = self.second_of(Event::Demoted, first + ADMIN_DAYS.end);
        if self.number == 1 && (from..until).contains(&at.seconds()) { "admin" } else { "user" }
    }

    /// Whether a computer still lists this person after each removal.
    pub(super) fn keeps_a_grant(&self) -> bool {
        self.number == 2
    }
}

/// The activity events of a day about members who join and leave.
pub(super) fn plan_day(temporary: &[TemporaryMember], day: i64, out: &mut Vec<ActivityRecord>) {
    for someone in temporary {
        for (event, number) in EVENTS.into_iter().zip(0u64..).filter(|(event, _)| someone.happens_on(*event, day)) {
            let name = day.unsigned_abs() << 32 | SEASON | u64::from(someone.number) << 4 | number;
            out.push(ActivityRecord { at_nanos: someone.second_of(event, day) * 1_000_000_000, name });
        }
    }
}

/// Whether a record is one of [`plan_day`].
pub(super) fn is_turnover(record: ActivityRecord) -> bool {
    record.name & SEASON != 0
}

/// Writes the event's JSON text, without a separator.
pub(super) fn push_event(temporary: &[TemporaryMember], admin: &Person, record: ActivityRecord, out: &mut Vec<u8>) {
    let place = usize::try_from(record.name >> 4 & 0xff).expect("BUG: eight bits");
    let event = EVENTS[usize::try_from(record.name & 0xf).expect("BUG: four bits")];
    let person = &temporary[place].person;
    let actor = if event == Event::CameBack { person } else { admin };
    let (name, role) = match event {
        Event::Added => ("teamUserAddedEvent", Some("user")),
        Event::Promoted => ("teamUserRoleChangedEvent", Some("admin")),
        Event::Demoted => ("teamUserRoleChangedEvent", Some("user")),
        Event::Removed => ("teamUserRemovedEvent", None),
        Event::CameBack => ("teamUserLoggedInEvent", None),
    };
    out.extend_from_slice(b"{\"header\":{\"eventTimestampUnixNano\":");
    push_int(out, record.at_nanos);
    out.extend_from_slice(b",\"tokenInfo\":{\"userID\":");
    push_string(out, &actor.id);
    out.extend_from_slice(b",\"email\":");
    push_string(out, &actor.email);
    out.extend_from_slice(b",\"title\":\"dashboard session\"}},");
    push_string(out, name);
    out.extend_from_slice(b":{\"userID\":");
    push_string(out, &person.id);
    out.extend_from_slice(b",\"email\":");
    push_string(out, &person.email);
    if let Some(role) = role {
        out.extend_from_slice(b",\"role\":");
        push_string(out, role);
    }
    out.extend_from_slice(b"}}");
}

//! Members who join and leave: each is on the team for 28 of every 40 days, as seed and day determine. They make no
//! connections. Activity has an event for every change. One of them is an admin for some days; one keeps access to a
//! computer after each removal.

use crate::model::Instant;

use super::activity::ActivityRecord;
use super::cast::Person;
use super::json::{push_int, push_string};
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
pub(super) const SEASONAL: u32 = 3;

/// The activity events of a member who joins and leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Added,
    Promoted,
    Demoted,
    Removed,
    /// The person signs in hours after the removal, because one grant was left.
    CameBack,
}

const TOLD: [Told; 5] = [Told::Added, Told::Promoted, Told::Demoted, Told::Removed, Told::CameBack];

/// A member who joins and leaves.
pub(super) struct Seasonal {
    pub person: Person,
    number: u32,
    seed: u64,
}

impl Seasonal {
    pub(super) fn new(person: Person, number: u32, seed: u64) -> Self {
        Self { person, number, seed: mix2(seed, 0x5ea5 + u64::from(number)) }
    }

    /// The number of days since the stay began; it counts on until the next stay begins.
    fn phase(&self, day: i64) -> i64 {
        let offset = i64::try_from(self.seed % 13).expect("BUG: less than 13") + i64::from(self.number) * 13;
        (day + offset).rem_euclid(ROUND_DAYS)
    }

    /// The second of the day at which an event happens.
    fn second_of(&self, told: Told, day: i64) -> i64 {
        let hour = match told {
            Told::Added => 8,
            Told::Promoted | Told::Demoted => 11,
            Told::Removed => 15,
            Told::CameBack => 20,
        };
        let minute = i64::try_from(mix2(self.seed, day.unsigned_abs()) % 3_600).expect("BUG: less than an hour");
        day * DAY_SECONDS + hour * 3_600 + minute
    }

    fn is_told(&self, told: Told, day: i64) -> bool {
        let phase = self.phase(day);
        match told {
            Told::Added => phase == 0,
            Told::Promoted => self.number == 1 && phase == ADMIN_DAYS.start,
            Told::Demoted => self.number == 1 && phase == ADMIN_DAYS.end,
            Told::Removed => phase == STAY_DAYS,
            Told::CameBack => self.number == 2 && phase == STAY_DAYS,
        }
    }

    /// When the stay that includes `at` began; `None` if this person is not on the team at that time.
    pub(super) fn joined_at(&self, at: Instant) -> Option<Instant> {
        let day = at.seconds().div_euclid(DAY_SECONDS);
        let first = day - self.phase(day);
        let from = self.second_of(Told::Added, first);
        let is_there = (from..self.second_of(Told::Removed, first + STAY_DAYS)).contains(&at.seconds());
        is_there.then(|| Instant::from_seconds(from))
    }

    pub(super) fn role_at(&self, at: Instant) -> &'static str {
        let day = at.seconds().div_euclid(DAY_SECONDS);
        let first = day - self.phase(day);
        let from = self.second_of(Told::Promoted, first + ADMIN_DAYS.start);
        let until = self.second_of(Told::Demoted, first + ADMIN_DAYS.end);
        if self.number == 1 && (from..until).contains(&at.seconds()) { "admin" } else { "user" }
    }

    /// Whether a computer still lists this person after each removal.
    pub(super) fn is_forgotten(&self) -> bool {
        self.number == 2
    }
}

/// The activity events of a day about members who join and leave.
pub(super) fn plan_day(seasonal: &[Seasonal], day: i64, out: &mut Vec<ActivityRecord>) {
    for someone in seasonal {
        for (told, number) in TOLD.into_iter().zip(0u64..).filter(|(told, _)| someone.is_told(*told, day)) {
            let name = day.unsigned_abs() << 32 | SEASON | u64::from(someone.number) << 4 | number;
            out.push(ActivityRecord { at_nanos: someone.second_of(told, day) * 1_000_000_000, name });
        }
    }
}

/// Whether a record is one of [`plan_day`].
pub(super) fn is_seasonal(record: ActivityRecord) -> bool {
    record.name & SEASON != 0
}

/// Writes the event's JSON text, without a separator.
pub(super) fn push_event(seasonal: &[Seasonal], admin: &Person, record: ActivityRecord, out: &mut Vec<u8>) {
    let place = usize::try_from(record.name >> 4 & 0xff).expect("BUG: eight bits");
    let told = TOLD[usize::try_from(record.name & 0xf).expect("BUG: four bits")];
    let person = &seasonal[place].person;
    let actor = if told == Told::CameBack { person } else { admin };
    let (name, role) = match told {
        Told::Added => ("teamUserAddedEvent", Some("user")),
        Told::Promoted => ("teamUserRoleChangedEvent", Some("admin")),
        Told::Demoted => ("teamUserRoleChangedEvent", Some("user")),
        Told::Removed => ("teamUserRemovedEvent", None),
        Told::CameBack => ("teamUserLoggedInEvent", None),
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

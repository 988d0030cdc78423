//! Activity events: changes to people, computers and settings. They have no id, and some of them occur twice.

use super::activity_record::ActivityRecord;
use super::json::{push_escaped_string, push_int, push_string};
use super::names::{GROUP_NAMES, HOSTILE_NAMES};
use super::roster::Roster;
use super::seed::{SeededRandom, mix2, opaque_id, secret};
use super::sessions::DAY_MS;
use super::turnover;

const DAY_NANOS: i64 = DAY_MS * 1_000_000;
/// Numbers from this one on belong to a dense second.
const DENSE_FROM: u64 = 1 << 30;

/// All activity of a day, unsorted. `mean` is the number of connections a day: a busy team has more changes.
pub(super) fn plan_day(roster: &Roster, day: i64, mean: u32, dense_every_days: u32, out: &mut Vec<ActivityRecord>) {
    if mean == 0 {
        return;
    }
    let name_of = |number: u64| day.unsigned_abs() << 32 | number;
    let mut random = SeededRandom::new(mix2(mix2(roster.seed, 0xac71), day.unsigned_abs()));
    for number in 0..10 + u64::from(mean) / 5 {
        let at_nanos = day * DAY_NANOS + random.span(0, DAY_NANOS);
        let record = ActivityRecord { at_nanos, name: name_of(number) };
        out.push(record);
        if random.per_mille(15) {
            out.push(record);
        }
    }
    turnover::plan_day(&roster.temporary, day, out);
    let rarity = u64::from(dense_every_days) * 3;
    if rarity > 0 && mix2(roster.seed ^ 0xac71, day.unsigned_abs()).is_multiple_of(rarity) {
        plan_dense_second(day, &mut random, &name_of, out);
    }
}

/// An identity provider adds people: more than a page of additions in one second. Some have the same nanosecond, some
/// are twins.
fn plan_dense_second(day: i64, random: &mut SeededRandom, name_of: &dyn Fn(u64) -> u64, out: &mut Vec<ActivityRecord>) {
    let second = day * DAY_NANOS + random.span(0, 86_400) * 1_000_000_000;
    for number in 0..random.between(1_010, 1_300) {
        let at_nanos = second + random.span(0, 1_000) * 1_000_000;
        let record = ActivityRecord { at_nanos, name: name_of(DENSE_FROM + number) };
        out.push(record);
        if random.per_mille(20) {
            out.push(record);
        }
    }
}

/// Writes the event's JSON text, without a separator.
pub(super) fn push_activity(roster: &Roster, record: ActivityRecord, out: &mut Vec<u8>) {
    if turnover::is_turnover(record) {
        return turnover::push_event(&roster.temporary, &roster.people[0], record, out);
    }
    let mut random = SeededRandom::new(mix2(roster.seed ^ 0xac72, record.name));
    let actor = &roster.people[random.place(roster.people.len())];
    out.extend_from_slice(b"{\"header\":{\"eventTimestampUnixNano\":");
    push_int(out, record.at_nanos);
    if random.per_mille(700) {
        out.extend_from_slice(b",\"tokenInfo\":{\"userID\":");
        push_string(out, &actor.id);
        out.extend_from_slice(b",\"email\":");
        push_string(out, &actor.email);
        out.extend_from_slice(b",\"title\":\"dashboard session\"}");
    }
    out.extend_from_slice(b"},\"");
    if record.name & DENSE_FROM != 0 {
        push_newcomer(roster, record, out);
    } else {
        push_change(roster, record, &mut random, out);
    }
    out.extend_from_slice(b"}");
}

fn push_newcomer(roster: &Roster, record: ActivityRecord, out: &mut Vec<u8>) {
    out.extend_from_slice(b"teamUserAddedEvent\":{");
    push_field(out, "userID", &opaque_id(roster.seed, record.name));
    out.extend_from_slice(b",\"source\":\"scim\",\"role\":\"user\"}");
}

/// One of many kinds of change. None of them removes a computer: a reader would have to assume that its history is
/// lost.
fn push_change(roster: &Roster, record: ActivityRecord, random: &mut SeededRandom, out: &mut Vec<u8>) {
    let person = &roster.people[random.place(roster.people.len())];
    let stranger = opaque_id(roster.seed ^ 0x9057, record.name);
    let kind = random.below(1000);
    let (name, fields): (&str, Vec<(&str, String)>) = match kind {
        0..560 => ("teamUserLoggedInEvent", vec![("userID", person.id.clone()), ("provider", "password".to_owned())]),
        560..650 => (
            "teamSettingsChangedEvent",
            vec![("setting", "sessionTimeout".to_owned()), ("value", "\"8h\" <b>".to_owned())],
        ),
        650..720 => (
            "teamUserRemoteAccessChangedEvent",
            vec![("userID", person.id.clone()), ("remoteAccess", "enabled".to_owned())],
        ),
        720..780 => ("teamUserRoleChangedEvent", vec![("userID", person.id.clone()), ("role", person.role.to_owned())]),
        780..830 => ("teamGroupRenamedEvent", vec![("name", (*random.pick(&GROUP_NAMES)).to_owned())]),
        830..870 => ("teamUserAddedEvent", vec![("userID", stranger), ("role", "user".to_owned())]),
        870..940 => (
            "teamDeviceRenamedEvent",
            vec![("deviceID", stranger), ("name", (*random.pick(&HOSTILE_NAMES)).to_owned())],
        ),
        940..970 => (
            "teamUserInvitedEvent",
            vec![("name", "newcomers".to_owned()), ("secret", secret(roster.seed, record.name))],
        ),
        970..994 => {
            ("teamDeviceInviteCreatedEvent", vec![("id", stranger), ("secret", secret(roster.seed, record.name))])
        }
        _ => ("teamQuantumPolicyChangedEvent", vec![("entanglement", "maximal".to_owned())]),
    };
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":{");
    for (place, (key, value)) in fields.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push_field(out, key, value);
    }
    if random.per_mille(20) {
        out.extend_from_slice(b", \"note\" : ");
        push_escaped_string(out, "Größe > 10 \u{1f600}");
    }
    out.push(b'}');
}

fn push_field(out: &mut Vec<u8>, key: &str, value: &str) {
    push_string(out, key);
    out.push(b':');
    push_string(out, value);
}

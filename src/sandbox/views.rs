//! The team, its computers and its people as JSON. Fields without a value are left out.

use serde_json::{Map, Value, json};

use crate::model::Instant;

use super::cast::{Computer, Group, Invite, Person};
use super::seed::{Dice, mix2};
use super::team::{Member, Team};
use super::world::{Role, World};

/// The group of those who come and go.
const CONTRACTORS: usize = 3;

fn object(fields: Vec<(&str, Value)>) -> Value {
    let is_there = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    Value::Object(fields.into_iter().filter(|(_, value)| is_there(value)).map(|(k, v)| (k.to_owned(), v)).collect())
}

/// Most computers have been online lately; some have not for months, and some never were.
fn last_online(team: &Team, place: u32, end: Instant) -> Option<i64> {
    let mut dice = Dice::new(mix2(team.cast.seed, u64::from(place)));
    let idle_seconds = dice.span(0, 400_000);
    match place % 20 {
        13 => None,
        17 => Some(end.seconds() - idle_seconds - 200 * 86_400),
        _ => Some(end.seconds() - idle_seconds),
    }
}

pub(super) fn computer(team: &Team, place: u32, world: &World) -> Value {
    let seen: &Computer = &team.cast.computers[place as usize];
    let mut users: Vec<&str> = seen.users.iter().map(|&user| team.cast.people[user].id.as_str()).collect();
    for someone in team.cast.seasonal.iter().filter(|_| place == 1) {
        if someone.is_forgotten() || someone.joined_at(world.roster_at()).is_some() {
            users.push(&someone.person.id);
        }
    }
    object(vec![
        ("id", json!(seen.id.as_str())),
        ("name", json!(seen.name)),
        ("lastOnlineAt", json!(last_online(team, place, world.end))),
        ("users", json!(users)),
        ("groups", seen.groups.iter().map(|&group| json!(team.cast.groups[group].id)).collect()),
        (
            "annotations",
            if place.is_multiple_of(4) { json!([{"key": "tag", "value": "studio,floor-2"}]) } else { Value::Null },
        ),
        ("clientInfo", json!({"version": "3.7.4", "os": seen.system})),
    ])
}

/// Most have been there lately; some have not for months, and some never were.
fn last_used(seen: &Person, end: Instant) -> Option<i64> {
    let mut dice = Dice::new(u64::from(seen.home_address));
    let age = dice.span(0, 500_000);
    match dice.below(10) {
        0 => None,
        1 => Some(end.seconds() - age - 120 * 86_400),
        _ => Some(end.seconds() - age),
    }
}

pub(super) fn member(team: &Team, seen: &Member<'_>, end: Instant) -> Value {
    let Member { person, role, joined_at } = seen;
    let providers = if person.sso { json!(["saml"]) } else { json!(["password"]) };
    let joined = joined_at.unwrap_or(team.created_at).seconds();
    object(vec![
        ("id", json!(person.id)),
        ("email", json!(person.email)),
        ("firstName", json!(person.first_name)),
        ("lastName", json!(person.last_name)),
        ("role", json!(role)),
        ("remoteAccess", json!(if person.remote_access { "enabled" } else { "disabled" })),
        ("totpEnabled", json!(person.totp)),
        ("authProviders", providers),
        ("joinedOn", json!({"seconds": joined})),
        ("lastUsedAt", json!(last_used(person, end))),
        ("scimUserInfo", scim(person)),
    ])
}

fn scim(seen: &Person) -> Value {
    if seen.scim { json!({"active": true}) } else { Value::Null }
}

pub(super) fn sso_person(seen: &Person) -> Value {
    object(vec![
        ("id", json!(seen.id)),
        ("email", json!(seen.email)),
        ("firstName", json!(seen.first_name)),
        ("lastName", json!(seen.last_name)),
        ("scimUserInfo", scim(seen)),
    ])
}

/// User authentication info: no profile, addresses masked.
pub(super) fn authentication(seen: &Person, end: Instant) -> Value {
    let provider = if seen.sso { "saml" } else { "password" };
    let masked = format!("{}***@***", seen.email.chars().next().unwrap_or('*'));
    json!({
        "totp": {"enabled": seen.totp},
        "authProviders": [{"provider": provider, "email": masked}],
        "tokenLog": tokens(seen, end),
    })
}

/// A session of the dashboard, and with some a token of their own: without an end, past it, or unused for long.
fn tokens(seen: &Person, end: Instant) -> Value {
    const DAY: i64 = 86_400;
    let mut dice = Dice::new(u64::from(seen.home_address) + 1);
    let used = end.seconds() - dice.span(0, 90_000);
    let address = std::net::Ipv4Addr::from(seen.home_address).to_string();
    let token = |title: &str, scope: &str, used: Option<i64>, expires: Option<i64>| {
        object(vec![
            ("title", json!(title)),
            ("scopes", json!([scope])),
            ("lastUsed", json!(used)),
            ("lastUsedIPAddress", used.map_or(Value::Null, |_| json!(address))),
            ("expiresAt", json!(expires)),
        ])
    };
    let mut all = vec![token("dashboard session", "team:read", Some(used), Some(used + 90 * DAY))];
    match dice.below(8) {
        0 => all.push(token("nightly export", "team:read", Some(used), None)),
        1 => all.push(token("old script", "team:write", Some(used - 300 * DAY), None)),
        2 => all.push(token("trial", "team:read", Some(used - 40 * DAY), Some(used - 10 * DAY))),
        3 => all.push(token("never used", "team:write", None, Some(used + 14 * DAY))),
        _ => {}
    }
    json!(all)
}

pub(super) fn team(world: &World, team: &Team, role: Role) -> Value {
    let cast = &team.cast;
    let mut fields = vec![
        ("id", json!(cast.id.as_str())),
        ("name", json!(cast.name)),
        ("avatarURL", json!(format!("https://avatars.example/{}.png", cast.id))),
    ];
    if role == Role::Member {
        return object(fields);
    }
    let computers = team
        .computers()
        .map(|place| (cast.computers[place as usize].id.as_str().to_owned(), computer(team, place, world)));
    let at = world.roster_at();
    let people = team.members(at).map(|seen| (seen.person.id.clone(), member(team, &seen, world.end)));
    let groups = cast.groups.iter().zip(0usize..).map(|(seen, place)| (seen.id.clone(), group(team, seen, place, at)));
    let created = team.created_at.seconds();
    fields.extend([
        ("createdAt", json!({"unixMilli": created * 1000})),
        ("billing", json!({"plan": "enterprise", "licensedUsers": cast.people.len() + 5})),
        ("deviceInvites", cast.installers.iter().map(|seen| installer(seen, created)).collect()),
        ("devices", Value::Object(computers.collect::<Map<_, _>>())),
        ("groups", Value::Object(groups.collect::<Map<_, _>>())),
        ("planFeatures", json!({"deviceEventsMaxRetrievalDuration": world.config.plan_span().as_secs()})),
        ("saml", json!({"enabled": true})),
        ("security", json!({"totpRequired": false})),
        ("userInvites", cast.user_invites.iter().map(|seen| user_invite(seen, created)).collect()),
        ("users", Value::Object(people.collect::<Map<_, _>>())),
    ]);
    object(fields)
}

fn group(team: &Team, seen: &Group, place: usize, at: Instant) -> Value {
    let mut users: Vec<&str> = seen.users.iter().map(|&user| team.cast.people[user].id.as_str()).collect();
    if place == CONTRACTORS {
        let coming = team.cast.seasonal.iter().filter(|seen| seen.joined_at(at).is_some());
        users.extend(coming.map(|seen| seen.person.id.as_str()));
    }
    let here = |&computer: &u32| team.cast.computers[computer as usize].groups.contains(&place);
    let computers =
        team.computers().filter(here).map(|computer| json!(team.cast.computers[computer as usize].id.as_str()));
    object(vec![
        ("name", json!(seen.name)),
        ("users", json!(users)),
        ("devices", computers.collect()),
        ("scimManaged", json!(seen.scim)),
    ])
}

fn installer(seen: &Invite, created: i64) -> Value {
    let download = |kind: &str| format!("https://downloads.example/{}/{kind}", seen.secret);
    object(vec![
        ("id", json!(seen.id)),
        ("name", json!(seen.name)),
        ("secret", json!(seen.secret)),
        ("connectDownloads", json!({"winexe": download("exe"), "winmsi": download("msi"), "macpkg": download("pkg")})),
        ("requireAuthentication", json!(false)),
        ("createdAt", json!(created)),
    ])
}

fn user_invite(seen: &Invite, created: i64) -> Value {
    object(vec![
        ("secret", json!(seen.secret)),
        ("name", json!(seen.name)),
        ("sentTo", json!(seen.sent_to)),
        ("singleUse", json!(seen.sent_to.is_some())),
        ("createdAt", json!(created)),
        ("expiresAt", json!(created + 400 * 86_400)),
    ])
}

//! The team, its computers and its people as JSON. Fields without a value are left out.

use serde_json::{Map, Value, json};

use crate::model::Instant;

use super::cast::{Computer, Group, Invite, Person};
use super::seed::{Dice, mix2};
use super::team::Team;
use super::world::{Role, World};

fn object(fields: Vec<(&str, Value)>) -> Value {
    let is_there = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    Value::Object(fields.into_iter().filter(|(_, value)| is_there(value)).map(|(k, v)| (k.to_owned(), v)).collect())
}

pub(super) fn computer(team: &Team, place: u32, end: Instant) -> Value {
    let seen: &Computer = &team.cast.computers[place as usize];
    let idle_seconds = Dice::new(mix2(team.cast.seed, u64::from(place))).span(0, 400_000);
    object(vec![
        ("id", json!(seen.id.as_str())),
        ("name", json!(seen.name)),
        ("lastOnlineAt", json!(end.seconds() - idle_seconds)),
        ("users", seen.users.iter().map(|&user| json!(team.cast.people[user].id)).collect()),
        ("groups", seen.groups.iter().map(|&group| json!(team.cast.groups[group].id)).collect()),
        (
            "annotations",
            if place.is_multiple_of(4) { json!([{"key": "tag", "value": "studio,floor-2"}]) } else { Value::Null },
        ),
        ("clientInfo", json!({"version": "3.7.4", "os": seen.system})),
    ])
}

pub(super) fn person(seen: &Person, end: Instant) -> Value {
    let providers = if seen.sso { json!(["saml"]) } else { json!(["password"]) };
    let age = Dice::new(u64::from(seen.home_address)).span(0, 500_000);
    object(vec![
        ("id", json!(seen.id)),
        ("email", json!(seen.email)),
        ("firstName", json!(seen.first_name)),
        ("lastName", json!(seen.last_name)),
        ("role", json!(seen.role)),
        ("remoteAccess", json!(if seen.remote_access { "enabled" } else { "disabled" })),
        ("totpEnabled", json!(seen.totp)),
        ("authProviders", providers),
        ("lastUsedAt", json!(end.seconds() - age)),
        ("scimUserInfo", scim(seen)),
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
    let used = end.seconds() - Dice::new(u64::from(seen.home_address) + 1).span(0, 90_000);
    json!({
        "totp": {"enabled": seen.totp},
        "authProviders": [{"provider": provider, "email": masked}],
        "tokenLog": [{
            "title": "dashboard session",
            "scopes": ["team:read"],
            "lastUsed": used,
            "lastUsedIPAddress": std::net::Ipv4Addr::from(seen.home_address).to_string(),
            "expiresAt": used + 90 * 86_400,
        }],
    })
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
        .map(|place| (cast.computers[place as usize].id.as_str().to_owned(), computer(team, place, world.end)));
    let people = cast.people.iter().map(|seen| (seen.id.clone(), person(seen, world.end)));
    let groups = cast.groups.iter().zip(0usize..).map(|(seen, place)| (seen.id.clone(), group(team, seen, place)));
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

fn group(team: &Team, seen: &Group, place: usize) -> Value {
    let here = |&computer: &u32| team.cast.computers[computer as usize].groups.contains(&place);
    let computers =
        team.computers().filter(here).map(|computer| json!(team.cast.computers[computer as usize].id.as_str()));
    object(vec![
        ("name", json!(seen.name)),
        ("users", seen.users.iter().map(|&user| json!(team.cast.people[user].id)).collect()),
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

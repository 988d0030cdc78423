//! The team, its computers and its people as JSON, without fields that have no value.

use serde_json::{Map, Value, json};

use super::request::Context;
use super::state::{
    AgentConfig, Annotation, DeleteSchedule, Device, Group, Installer, Invite, Migration, TeamState, User, is_over,
};

pub fn object(fields: Vec<(&str, Value)>) -> Value {
    let is_there = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    Value::Object(fields.into_iter().filter(|(_, value)| is_there(value)).map(|(k, v)| (k.to_owned(), v)).collect())
}

pub fn annotations(all: &[Annotation]) -> Value {
    all.iter().map(|held| object(vec![("key", json!(held.key)), ("value", json!(held.value))])).collect()
}

/// Agent version and operating system details.
pub fn client_info(system: &str, hostname: &str) -> Value {
    json!({"version": "3.7.4", "osInfo": {"platform": system, "version": "11", "hostname": hostname}})
}

pub fn computer(seen: &Device) -> Value {
    object(vec![
        ("id", json!(seen.id)),
        ("name", json!(seen.name)),
        ("lastOnlineAt", json!(seen.last_online_at)),
        ("users", json!(seen.users)),
        ("groups", json!(seen.groups)),
        ("annotations", annotations(&seen.annotations)),
        ("clientInfo", seen.client_info.clone()),
    ])
}

pub fn user(state: &TeamState, seen: &User) -> Value {
    object(vec![
        ("id", json!(seen.id)),
        ("email", json!(seen.email)),
        ("firstName", json!(seen.first_name)),
        ("lastName", json!(seen.last_name)),
        ("avatarURL", json!(seen.avatar_url)),
        ("role", json!(seen.role.name())),
        ("remoteAccess", json!(if seen.remote_access { "enabled" } else { "disabled" })),
        ("totpEnabled", json!(seen.totp)),
        ("authProviders", json!(seen.providers)),
        ("annotations", annotations(&seen.annotations)),
        ("joinedOn", json!({"seconds": seen.joined_on})),
        ("lastUsedAt", json!(seen.last_used_at)),
        ("scimUserInfo", scim(seen)),
        ("userDeviceMigrate", migration_of(state, seen)),
    ])
}

fn migration_of(state: &TeamState, seen: &User) -> Value {
    state.migrations.iter().find(|held| held.user == seen.id).map_or(Value::Null, migration)
}

pub fn migration(seen: &Migration) -> Value {
    json!({"userID": seen.user, "devices": seen.devices, "startedAt": seen.started_at})
}

pub fn delete_schedule(seen: &DeleteSchedule) -> Value {
    json!({"scheduledAt": seen.scheduled_at, "deleteAt": seen.delete_at})
}

fn scim(seen: &User) -> Value {
    if seen.scim { json!({"active": true}) } else { Value::Null }
}

pub fn sso_user(state: &TeamState, seen: &User) -> Value {
    object(vec![
        ("id", json!(seen.id)),
        ("email", json!(seen.email)),
        ("firstName", json!(seen.first_name)),
        ("lastName", json!(seen.last_name)),
        ("avatarURL", json!(seen.avatar_url)),
        ("scimUserInfo", scim(seen)),
        ("userDeviceMigrate", migration_of(state, seen)),
    ])
}

/// User authentication info: without a profile, with masked addresses.
pub fn authentication(seen: &User) -> Value {
    let masked = format!("{}***@***", seen.email.chars().next().unwrap_or('*'));
    let avatar = seen.avatar_url.as_ref().map(|_| "https://***");
    let method =
        |name: &String| object(vec![("provider", json!(name)), ("email", json!(masked)), ("avatarURL", json!(avatar))]);
    let providers: Value = seen.providers.iter().map(method).collect();
    json!({"totp": {"enabled": seen.totp}, "authProviders": providers, "tokenLog": seen.token_log})
}

/// The whole team; for callers who are no admins, the limited view.
pub fn team(state: &TeamState, context: &Context<'_>) -> Value {
    let mut fields = vec![
        ("id", json!(state.id)),
        ("name", json!(state.name)),
        ("avatarURL", json!(format!("https://avatars.example/{}.png", state.id))),
    ];
    if !context.caller.is_admin {
        return object(fields);
    }
    let now = context.now.seconds();
    let is_shown = |expires_at| context.choices.list_expired || !is_over(expires_at, now);
    let computers = state.devices.iter().map(|device| (device.id.clone(), computer(device)));
    let people = state.users.iter().map(|held| (held.id.clone(), user(state, held)));
    let groups = state.groups.iter().map(|held| (held.id.clone(), Value::Object(group(state, held))));
    let installers = state.installers.iter().filter(|held| is_shown(held.expires_at)).map(installer);
    let invites = state.invites.iter().filter(|held| is_shown(held.expires_at)).map(invite);
    let configs = state.configs.iter().map(|held| config(state, held));
    let schedule = state.delete_schedule.as_ref().map_or(Value::Null, delete_schedule);
    fields.extend([
        ("createdAt", json!({"unixMilli": state.created_at * 1000})),
        (
            "billing",
            json!({"plan": if state.plan.enterprise { "enterprise" } else { "teams" },
            "licensedUsers": state.plan.licensed_users}),
        ),
        ("deleteSchedule", schedule),
        ("deviceConfigs", configs.collect()),
        ("deviceInvites", installers.collect()),
        ("devices", Value::Object(computers.collect::<Map<_, _>>())),
        ("groups", Value::Object(groups.collect::<Map<_, _>>())),
        ("planFeatures", json!({"deviceEventsMaxRetrievalDuration": context.plan_span})),
        ("saml", if state.plan.sso { json!({"enabled": true}) } else { Value::Null }),
        ("security", json!({"totpRequired": false})),
        ("userDeviceMigrate", state.migrations.iter().map(migration).collect()),
        ("userInvites", invites.collect()),
        ("users", Value::Object(people.collect::<Map<_, _>>())),
    ]);
    object(fields)
}

/// A configuration's name, and the things to which it is assigned.
pub fn config(state: &TeamState, seen: &AgentConfig) -> Value {
    let is_its = |held: &Option<String>| held.as_ref() == Some(&seen.id);
    let devices = state.devices.iter().filter(|held| is_its(&held.config)).map(|held| json!(held.id));
    let groups = state.groups.iter().filter(|held| is_its(&held.config)).map(|held| json!(held.id));
    let installers = state.installers.iter().filter(|held| is_its(&held.config)).map(|held| json!(held.id));
    object(vec![
        ("id", json!(seen.id)),
        ("name", json!(seen.name)),
        ("devices", devices.collect()),
        ("groups", groups.collect()),
        ("installers", installers.collect()),
    ])
}

fn group(state: &TeamState, seen: &Group) -> Map<String, Value> {
    let computers = state.devices.iter().filter(|device| device.groups.contains(&seen.id));
    let Value::Object(fields) = object(vec![
        ("name", json!(seen.name)),
        ("users", json!(seen.users)),
        ("devices", computers.map(|device| json!(device.id)).collect()),
        ("annotations", annotations(&seen.annotations)),
        ("scimManaged", json!(seen.scim)),
    ]) else {
        return Map::new();
    };
    fields
}

/// A group with its id, which is the key in the team's map.
pub fn whole_group(state: &TeamState, seen: &Group) -> Value {
    let mut fields = group(state, seen);
    fields.insert("id".to_owned(), json!(seen.id));
    Value::Object(fields)
}

pub fn installer(seen: &Installer) -> Value {
    let download = |kind: &str| format!("https://downloads.example/{}/{kind}", seen.secret);
    object(vec![
        ("id", json!(seen.id)),
        ("name", json!(seen.name)),
        ("secret", json!(seen.secret)),
        ("connectDownloads", json!({"winexe": download("exe"), "winmsi": download("msi"), "macpkg": download("pkg")})),
        ("users", json!(seen.users)),
        ("groups", json!(seen.groups)),
        ("requireAuthentication", json!(seen.requires_authentication)),
        ("deviceConfigID", seen.config.as_ref().map_or(Value::Null, |id| json!({"id": id}))),
        ("createdAt", json!(seen.created_at)),
        ("expiresAt", json!(seen.expires_at)),
    ])
}

pub fn invite(seen: &Invite) -> Value {
    object(vec![
        ("secret", json!(seen.secret)),
        ("name", json!(seen.name)),
        ("sentTo", json!(seen.sent_to)),
        ("singleUse", json!(seen.single_use)),
        ("groups", json!(seen.groups)),
        ("devices", json!(seen.devices)),
        ("createdAt", json!(seen.created_at)),
        ("expiresAt", json!(seen.expires_at)),
    ])
}

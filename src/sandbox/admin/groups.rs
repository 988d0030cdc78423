//! Access Groups: the seven rules under "Access Groups".

use serde_json::{Value, json};

use crate::sandbox::answer::Refusal;

use super::events::{self, activity};
use super::request::{AdminRequest, Answer, Effect, Outcome};
use super::state::{Group, TeamState, push_new};
use super::views;

const SCIM_MANAGED: &str = "group-scim-managed";

/// The change that a request makes to one group.
pub type GroupChange = fn(&mut TeamState, &str, &[String], &[String]) -> Result<Effect, Refusal>;

pub fn create(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    if state.groups.len() >= state.plan.groups {
        let detail = format!("the plan allows {} groups", state.plan.groups);
        return Err(Refusal::rule("team-too-many-groups", detail));
    }
    let group = Group {
        id: state.draw_id(),
        name: request.text("name").unwrap_or_default().to_owned(),
        users: Vec::new(),
        scim: false,
        annotations: Vec::new(),
        config: None,
    };
    let effect = activity(events::GROUP_CREATED, json!({"groupID": group.id, "name": group.name}));
    let answer = views::whole_group(state, &group);
    state.groups.push(group);
    Ok(Outcome::created().with(answer).with_effect(effect))
}

fn refuse_scim(group: &Group, what: &str) -> Result<(), Refusal> {
    if !group.scim {
        return Ok(());
    }
    Err(Refusal::rule(SCIM_MANAGED, format!("the identity provider manages this group: {what}")))
}

pub fn rename(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    let group = state.group_mut(request.id(0))?;
    refuse_scim(group, "it cannot be renamed here")?;
    let name = request.text("name").unwrap_or_default();
    let effect =
        activity(events::GROUP_RENAMED, json!({"groupID": group.id, "name": name, "previousName": group.name}));
    name.clone_into(&mut group.name);
    let answer = views::object(vec![("id", json!(group.id)), ("name", json!(group.name))]);
    Ok(Outcome::ok().with(answer).with_effect(effect))
}

/// Removes a group. The access that it granted ends; its users and computers stay.
pub fn remove(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    let group = state.group(request.id(0))?;
    refuse_scim(group, "it cannot be deleted here")?;
    let effect = activity(events::GROUP_REMOVED, json!({"groupID": group.id, "name": group.name}));
    let id = group.id.clone();
    state.groups.retain(|group| group.id != id);
    let holders = state.devices.iter_mut().map(|device| &mut device.groups);
    let holders = holders.chain(state.installers.iter_mut().map(|installer| &mut installer.groups));
    holders
        .chain(state.invites.iter_mut().map(|invite| &mut invite.groups))
        .for_each(|list| list.retain(|held| *held != id));
    Ok(Outcome::ok().with_effect(effect))
}

pub fn insert_members(
    state: &mut TeamState,
    group: &str,
    users: &[String],
    devices: &[String],
) -> Result<Effect, Refusal> {
    let found = state.group_mut(group)?;
    users.iter().for_each(|user| push_new(&mut found.users, user));
    devices.iter().try_for_each(|device| state.join_group(device, group))?;
    Ok(activity(events::GROUP_MEMBERS_ADDED, json!({"groupID": group, "users": users, "devices": devices})))
}

pub fn delete_members(
    state: &mut TeamState,
    group: &str,
    users: &[String],
    devices: &[String],
) -> Result<Effect, Refusal> {
    state.group_mut(group)?.users.retain(|user| !users.contains(user));
    for device in devices {
        state.device_mut(device)?.groups.retain(|other| other != group);
    }
    Ok(activity(events::GROUP_MEMBERS_REMOVED, json!({"groupID": group, "users": users, "devices": devices})))
}

pub fn add_members(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    single(state, request, insert_members)
}

pub fn remove_members(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    single(state, request, delete_members)
}

/// If the identity provider manages the group, a request with any user fails as a whole, its computers included.
fn single(state: &mut TeamState, request: &AdminRequest<'_>, act: GroupChange) -> Answer {
    let (group, users, devices) = (request.id(0), request.list("users"), request.list("devices"));
    let found = state.group(group)?;
    if !users.is_empty() {
        refuse_scim(found, "its users cannot be changed here")?;
    }
    state.require_known(&users, &[], &devices)?;
    Ok(Outcome::created().with_effect(act(state, group, &users, &devices)?))
}

/// Handles each group by itself. A managed group accepts the computers and skips the users, and the answer says so.
pub fn bulk(state: &mut TeamState, request: &AdminRequest<'_>, act: GroupChange) -> Outcome {
    let (users, devices) = (request.list("users"), request.list("devices"));
    let (mut errors, mut effects) = (Vec::new(), Vec::new());
    let (mut is_any_done, mut took_users) = (false, false);
    for group in request.list("groups") {
        let checked =
            state.require_known(&users, &[], &devices).and_then(|()| state.group(&group).map(|held| held.scim));
        let skips_users = checked.as_ref().is_ok_and(|&scim| scim) && !users.is_empty();
        let error = |code: &str, detail: &str| json!({"groupID": group, "code": code, "detail": detail});
        if skips_users {
            errors.push(error(SCIM_MANAGED, "the identity provider manages this group: its users were skipped"));
        }
        if skips_users && devices.is_empty() {
            continue;
        }
        match checked.and_then(|_| act(state, &group, if skips_users { &[] } else { &users }, &devices)) {
            Ok(effect) => {
                effects.push(effect);
                is_any_done = true;
                took_users |= !skips_users;
            }
            Err(refusal) => errors.push(error(refusal.code, &refusal.detail)),
        }
    }
    let taken = |list: Vec<String>, is_taken| if is_taken { list } else { Vec::new() };
    let answer = views::object(vec![
        ("devices", json!(taken(devices, is_any_done))),
        ("users", json!(taken(users, took_users))),
        ("errors", Value::Array(errors)),
    ]);
    Outcome::ok().with(answer).with_effects(effects)
}

//! Who may connect to a computer directly: the four rules under "Access to computers".

use serde_json::{Value, json};

use crate::sandbox::answer::Refusal;

use super::events::{self, activity};
use super::request::{AdminRequest, Answer, Effect, Outcome};
use super::state::{TeamState, push_new};
use super::views;

/// The change that a request makes to one computer.
pub type ComputerChange = fn(&mut TeamState, &str, &[String], &[String]) -> Result<Effect, Refusal>;

fn check(state: &TeamState, device: &str, users: &[String], groups: &[String]) -> Result<(), Refusal> {
    state.device(device)?;
    state.require_known(users, groups, &[])
}

fn payload(device: &str, users: &[String], groups: &[String]) -> Value {
    json!({"deviceID": device, "users": users, "groups": groups})
}

/// Replaces the direct lists with the request's lists.
pub fn replace(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    let (device, users, groups) = (request.id(0), request.list("users"), request.list("groups"));
    check(state, device, &users, &groups)?;
    let held = state.device_mut(device)?;
    let kept: Vec<String> = groups.iter().filter(|group| held.groups.contains(group)).cloned().collect();
    held.users.clone_from(&users);
    held.groups.clone_from(&kept);
    let mut new = groups.iter().filter(|group| !kept.contains(group));
    new.try_for_each(|group| state.join_group(device, group))?;
    // Keep the request's order, also for entries that were there before.
    state.device_mut(device)?.groups.clone_from(&groups);
    Ok(Outcome::created().with_effect(activity(events::DEVICE_MEMBERS_REPLACED, payload(device, &users, &groups))))
}

pub fn grant(state: &mut TeamState, device: &str, users: &[String], groups: &[String]) -> Result<Effect, Refusal> {
    check(state, device, users, groups)?;
    let held = state.device_mut(device)?;
    users.iter().for_each(|user| push_new(&mut held.users, user));
    groups.iter().try_for_each(|group| state.join_group(device, group))?;
    Ok(activity(events::DEVICE_MEMBERS_ADDED, payload(device, users, groups)))
}

pub fn revoke(state: &mut TeamState, device: &str, users: &[String], groups: &[String]) -> Result<Effect, Refusal> {
    check(state, device, users, groups)?;
    let held = state.device_mut(device)?;
    held.users.retain(|user| !users.contains(user));
    held.groups.retain(|group| !groups.contains(group));
    Ok(activity(events::DEVICE_MEMBERS_REMOVED, payload(device, users, groups)))
}

pub fn add(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    single(state, request, grant)
}

pub fn remove(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    single(state, request, revoke)
}

fn single(state: &mut TeamState, request: &AdminRequest<'_>, act: ComputerChange) -> Answer {
    let effect = act(state, request.id(0), &request.list("users"), &request.list("groups"))?;
    Ok(Outcome::created().with_effect(effect))
}

/// Handles each computer by itself: an error of one computer does not stop the others.
pub fn bulk(state: &mut TeamState, request: &AdminRequest<'_>, act: ComputerChange) -> Outcome {
    let (users, groups) = (request.list("users"), request.list("groups"));
    let (mut done, mut errors, mut effects) = (Vec::new(), Vec::new(), Vec::new());
    for device in request.list("devices") {
        match act(state, &device, &users, &groups) {
            Ok(effect) => {
                effects.push(effect);
                done.push(device);
            }
            Err(refusal) => {
                errors.push(json!({"deviceID": device, "code": refusal.code, "detail": refusal.detail}));
            }
        }
    }
    let served = if done.is_empty() { Vec::new() } else { users };
    let answer =
        views::object(vec![("devices", json!(done)), ("users", json!(served)), ("errors", Value::Array(errors))]);
    Outcome::ok().with(answer).with_effects(effects)
}

//! Who may connect to a computer directly: the four rules under "Access to computers".

use serde_json::{Value, json};

use crate::sandbox::answer::Refusal;

use super::apply::Answer;
use super::asked::{Asked, Effect, Outcome};
use super::state::{TeamState, push_new};
use super::told::{self, told};
use super::views;

/// The change that a request makes to one computer.
pub type Act = fn(&mut TeamState, &str, &[String], &[String]) -> Result<Effect, Refusal>;

fn check(state: &TeamState, device: &str, users: &[String], groups: &[String]) -> Result<(), Refusal> {
    state.device(device)?;
    state.know(users, groups, &[])
}

fn payload(device: &str, users: &[String], groups: &[String]) -> Value {
    json!({"deviceID": device, "users": users, "groups": groups})
}

/// Replaces the direct lists with the request's lists.
pub fn replace(state: &mut TeamState, asked: &Asked<'_>) -> Answer {
    let (device, users, groups) = (asked.id(0), asked.list("users"), asked.list("groups"));
    check(state, device, &users, &groups)?;
    let held = state.device_mut(device)?;
    let kept: Vec<String> = groups.iter().filter(|group| held.groups.contains(group)).cloned().collect();
    held.users.clone_from(&users);
    held.groups.clone_from(&kept);
    let mut new = groups.iter().filter(|group| !kept.contains(group));
    new.try_for_each(|group| state.join_group(device, group))?;
    // Keep the request's order, also for entries that were there before.
    state.device_mut(device)?.groups.clone_from(&groups);
    Ok(Outcome::created().telling(told(told::DEVICE_MEMBERS_REPLACED, payload(device, &users, &groups))))
}

pub fn grant(state: &mut TeamState, device: &str, users: &[String], groups: &[String]) -> Result<Effect, Refusal> {
    check(state, device, users, groups)?;
    let held = state.device_mut(device)?;
    users.iter().for_each(|user| push_new(&mut held.users, user));
    groups.iter().try_for_each(|group| state.join_group(device, group))?;
    Ok(told(told::DEVICE_MEMBERS_ADDED, payload(device, users, groups)))
}

pub fn revoke(state: &mut TeamState, device: &str, users: &[String], groups: &[String]) -> Result<Effect, Refusal> {
    check(state, device, users, groups)?;
    let held = state.device_mut(device)?;
    held.users.retain(|user| !users.contains(user));
    held.groups.retain(|group| !groups.contains(group));
    Ok(told(told::DEVICE_MEMBERS_REMOVED, payload(device, users, groups)))
}

pub fn add(state: &mut TeamState, asked: &Asked<'_>) -> Answer {
    single(state, asked, grant)
}

pub fn remove(state: &mut TeamState, asked: &Asked<'_>) -> Answer {
    single(state, asked, revoke)
}

fn single(state: &mut TeamState, asked: &Asked<'_>, act: Act) -> Answer {
    let effect = act(state, asked.id(0), &asked.list("users"), &asked.list("groups"))?;
    Ok(Outcome::created().telling(effect))
}

/// Handles each computer by itself: an error of one computer does not stop the others.
pub fn bulk(state: &mut TeamState, asked: &Asked<'_>, act: Act) -> Outcome {
    let (users, groups) = (asked.list("users"), asked.list("groups"));
    let (mut done, mut errors, mut effects) = (Vec::new(), Vec::new(), Vec::new());
    for device in asked.list("devices") {
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
    Outcome::ok().with(answer).telling_all(effects)
}

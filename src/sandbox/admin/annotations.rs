//! Keys and values on computers, users and Access Groups.

use serde_json::json;

use crate::sandbox::answer::Refusal;

use super::events::{self, activity};
use super::request::{AdminRequest, Answer, Effect, Outcome};
use super::state::{Annotation, TeamState};
use super::views;

/// The kind of thing that has annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Device,
    User,
    Group,
}

fn held<'a>(state: &'a mut TeamState, subject: Subject, id: &str) -> Result<&'a mut Vec<Annotation>, Refusal> {
    Ok(match subject {
        Subject::Device => &mut state.device_mut(id)?.annotations,
        Subject::User => &mut state.user_mut(id)?.annotations,
        Subject::Group => &mut state.group_mut(id)?.annotations,
    })
}

fn changed(subject: Subject, id: &str, keys: &[&str]) -> Effect {
    let (name, field) = match subject {
        Subject::Device => (events::DEVICE_ANNOTATED, "deviceID"),
        Subject::User => (events::USER_ANNOTATED, "userID"),
        Subject::Group => (events::GROUP_ANNOTATED, "groupID"),
    };
    activity(name, json!({field: id, "keys": keys}))
}

pub fn list(state: &mut TeamState, subject: Subject, request: &AdminRequest<'_>) -> Answer {
    let all = held(state, subject, request.id(0))?;
    Ok(Outcome::ok().with(json!({"annotations": views::annotations(all)})))
}

/// Changes only the keys in the request. `tag` is an ordinary annotation, so a request replaces all tags.
pub fn write(state: &mut TeamState, subject: Subject, request: &AdminRequest<'_>) -> Answer {
    let most = state.plan.annotations;
    let all = held(state, subject, request.id(0))?;
    let mut written = all.clone();
    let sent = request.body.get("annotations").and_then(serde_json::Value::as_array);
    let mut keys = Vec::new();
    for item in sent.into_iter().flatten() {
        let text = |name: &str| item.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        let (key, value) = (text("key"), text("value"));
        keys.push(key);
        match written.iter_mut().find(|held| held.key == key) {
            Some(held) => value.clone_into(&mut held.value),
            None => written.push(Annotation { key: key.to_owned(), value: value.to_owned() }),
        }
    }
    if written.len() > most && written.len() > all.len() {
        let detail = format!("{} annotations, and {most} are allowed", written.len());
        return Err(Refusal::rule("team-too-many-annotations", detail));
    }
    *all = written;
    let answer = json!({"annotations": views::annotations(all)});
    Ok(Outcome::created().with(answer).with_effect(changed(subject, request.id(0), &keys)))
}

/// Ignores missing keys. The document shows the remaining annotations only for users.
pub fn delete(state: &mut TeamState, subject: Subject, request: &AdminRequest<'_>) -> Answer {
    let keys = request.list("annotationKeys");
    let all = held(state, subject, request.id(0))?;
    all.retain(|held| !keys.contains(&held.key));
    let left = json!({"annotations": views::annotations(all)});
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let outcome = if subject == Subject::User { Outcome::created().with(left) } else { Outcome::ok() };
    Ok(outcome.with_effect(changed(subject, request.id(0), &keys)))
}

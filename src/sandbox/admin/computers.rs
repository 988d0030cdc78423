//! Computers: list, rename, remove, and the links that open them.

use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;

use crate::sandbox::answer::Refusal;

use super::events::{self, activity};
use super::request::{AdminRequest, Answer, Effect, Outcome};
use super::state::TeamState;
use super::views;

pub fn list(state: &TeamState, request: &AdminRequest<'_>) -> Outcome {
    let filter = request.parameter("name");
    let is_asked = |name: &str| filter.is_none_or(|filter| name_matches(filter, name));
    let found: Value = state.devices.iter().filter(|seen| is_asked(&seen.name)).map(views::computer).collect();
    Outcome::ok().with(json!({"devices": found}))
}

/// Matches names and ignores case. `text` is the whole name, `text*` its beginning, `*text*` any part of it.
fn name_matches(filter: &str, name: &str) -> bool {
    let (filter, name) = (filter.to_lowercase(), name.to_lowercase());
    match (filter.strip_prefix('*'), filter.strip_suffix('*')) {
        (Some(rest), Some(_)) => name.contains(rest.strip_suffix('*').unwrap_or(rest)),
        (None, Some(beginning)) => name.starts_with(beginning),
        _ => name == filter,
    }
}

pub fn show(state: &TeamState, request: &AdminRequest<'_>) -> Answer {
    Ok(Outcome::ok().with(views::computer(state.device(request.id(0))?)))
}

pub fn rename(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    let device = state.device_mut(request.id(0))?;
    let name = request.text("name").unwrap_or_default();
    let effect =
        activity(events::DEVICE_RENAMED, json!({"deviceID": device.id, "name": name, "previousName": device.name}));
    name.clone_into(&mut device.name);
    let answer = views::object(vec![("id", json!(device.id)), ("name", json!(device.name))]);
    Ok(Outcome::ok().with(answer).with_effect(effect))
}

/// Removes a computer at once and without confirmation. Its connection history disappears too.
pub fn remove(state: &mut TeamState, request: &AdminRequest<'_>) -> Answer {
    let place = state.devices.iter().position(|device| device.id == request.id(0));
    let device = state.devices.remove(place.ok_or_else(|| Refusal::not_found("computer"))?);
    state.sessions.retain(|session| session.device != device.id);
    state.invites.iter_mut().for_each(|invite| invite.devices.retain(|id| *id != device.id));
    let effect = activity(events::DEVICE_REMOVED, json!({"deviceID": device.id, "name": device.name}));
    Ok(Outcome::ok().with_effect(Effect::ComputerRemoved(device.id)).with_effect(effect))
}

/// The first two links open the native app and hold the computer's current name. They encode a space as `%20`,
/// because they are not forms.
pub fn urls(state: &TeamState, request: &AdminRequest<'_>) -> Answer {
    let device = state.device(request.id(0))?;
    let name = byte_serialize(device.name.as_bytes()).collect::<String>().replace('+', "%20");
    let link = |verb: &str| format!("remote-access://{verb}/{}?name={name}", device.id);
    Ok(Outcome::ok().with(json!({
        "connect": link("connect"),
        "askScreenShare": link("ask-screen-share"),
        "dashboard": format!("https://dashboard.example/team/{}/computer/{}", state.id, device.id),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_filter_has_three_forms() {
        for (filter, name, matches) in [
            ("edit-001", "EDIT-001", true),
            ("edit", "EDIT-001", false),
            ("edit*", "EDIT-001", true),
            ("dit*", "EDIT-001", false),
            ("*DIT-0*", "EDIT-001", true),
            ("*xyz*", "EDIT-001", false),
            ("*001", "EDIT-001", false),
            ("*", "EDIT-001", true),
            ("**", "EDIT-001", true),
            ("", "EDIT-001", false),
            ("東京*", "東京-受付", true),
            ("CHLOÉ", "chloé", true),
        ] {
            assert_eq!(name_matches(filter, name), matches, "{filter:?} on {name:?}");
        }
    }
}

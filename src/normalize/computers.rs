//! Added and removed computers in activity events. The payload's shape is not documented.

use std::collections::BTreeSet;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::json::{Object, string};
use crate::model::DeviceId;

/// A longer text is no id.
const ID_CHARS_MAX: usize = 200;
/// Annals does not look for ids in values that are nested deeper.
const NESTING_MAX: usize = 128;

/// Whether an activity event of this type reports the removal of a computer. Only `teamDeviceRemovedEvent` is
/// documented.
pub fn is_removal(event_type: &str) -> bool {
    // A removal from a group, or of a thing from a computer, does not remove the computer.
    matches!(of_computer(event_type).as_deref(), Some("removed" | "deleted"))
}

/// Whether an activity event of this type reports an added computer.
pub fn is_addition(event_type: &str) -> bool {
    matches!(of_computer(event_type).as_deref(), Some("added" | "created"))
}

/// The verb of an event type about a computer, or about several.
fn of_computer(event_type: &str) -> Option<String> {
    let name = event_type.to_ascii_lowercase();
    let name = name.strip_prefix("team").unwrap_or(&name);
    let name = name.strip_suffix("event").unwrap_or(name);
    let verb = ["device", "computer"].iter().find_map(|what| name.strip_prefix(what))?;
    Some(verb.strip_prefix('s').unwrap_or(verb).to_owned())
}

/// The computers that an event names in the usual places (`deviceID`, `device.id`, `devices` and similar), else in its own `id`.
/// `event_type` is the event's own field.
pub fn devices_named(text: &str, event_type: &str) -> BTreeSet<DeviceId> {
    payload(text, event_type).map(|payload| ids_of(&payload).into_iter().collect()).unwrap_or_default()
}

/// The known computers with an id anywhere in the event's own field. The header can name the computer of the person who
/// removes another one.
pub fn devices_in(text: &str, event_type: &str, known: &BTreeSet<DeviceId>) -> BTreeSet<DeviceId> {
    let Some(payload) = payload(text, event_type) else { return BTreeSet::new() };
    let mut found = BTreeSet::new();
    let mut rest = vec![&payload];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) => found.extend(known.get(text.as_str()).cloned()),
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => {
                found.extend(members.keys().filter_map(|key| known.get(key.as_str()).cloned()));
                rest.extend(members.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

/// The name of the computer that an event is about.
pub fn computer_name(text: &str, event_type: &str) -> Option<String> {
    let payload = payload(text, event_type)?;
    let device = ["device", "computer"].iter().find_map(|key| payload.get(key)).unwrap_or(&payload);
    let name = ["name", "deviceName", "computerName"].iter().find_map(|key| device.get(key)?.as_str())?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The value of an event's own field.
fn payload(text: &str, event_type: &str) -> Option<Value> {
    Some(value(Object::parse(text)?.get(event_type)?, NESTING_MAX))
}

/// The value of a JSON text. A lone surrogate, a huge number or deep nesting spoils only its own place, because a parser that
/// refuses the whole text hides the computer.
fn value(text: &str, nesting: usize) -> Value {
    if nesting == 0 {
        return Value::Null;
    }
    let inner = |text: &str| value(text, nesting - 1);
    match text.as_bytes().first() {
        Some(b'"') => string(text).map_or(Value::Null, |text| Value::String(text.into_owned())),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            items.into_iter().map(|item| inner(item.get())).collect()
        }
        Some(b'{') => {
            let object = Object::parse(text).unwrap_or_default();
            // The last of equal keys counts.
            let members: Vec<_> = object.backwards().map(|(key, text)| (key.to_owned(), inner(text))).collect();
            members.into_iter().rev().collect()
        }
        _ => serde_json::from_str(text).unwrap_or_default(),
    }
}

fn ids_of(payload: &Value) -> Vec<DeviceId> {
    let Value::Object(members) = payload else { return listed_ids(payload) };
    let of_keys = |keys: &[&str]| -> Vec<&Value> {
        let of_key = members.iter().filter(|(key, _)| keys.contains(&plain(key).as_str()));
        of_key.map(|(_, value)| value).collect()
    };
    let ids = of_keys(&["deviceid", "deviceids", "computerid", "computerids"]);
    let devices = of_keys(&["device", "devices", "computer", "computers"]);
    match (ids.is_empty(), devices.is_empty()) {
        (false, _) => ids.into_iter().flat_map(listed_ids).collect(),
        (true, false) => devices.into_iter().flat_map(ids_of_devices).collect(),
        (true, true) => of_keys(&["id", "ids"]).into_iter().flat_map(listed_ids).collect(),
    }
}

/// The ids of a computer, of a list of them, or of a map that has their ids for keys.
fn ids_of_devices(devices: &Value) -> Vec<DeviceId> {
    match devices {
        Value::Array(items) => items.iter().flat_map(ids_of_devices).collect(),
        Value::Object(members) if members.values().all(Value::is_object) => {
            members.keys().filter_map(|key| id_of(key)).collect()
        }
        other => ids_of(other),
    }
}

fn listed_ids(ids: &Value) -> Vec<DeviceId> {
    match ids {
        Value::String(text) => id_of(text).into_iter().collect(),
        Value::Number(number) => id_of(&number.to_string()).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(listed_ids).collect(),
        Value::Null | Value::Bool(_) | Value::Object(_) => Vec::new(),
    }
}

/// `device_id`, `deviceID` and `device-id` are one key.
fn plain(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn id_of(text: &str) -> Option<DeviceId> {
    (!text.is_empty() && text.chars().count() <= ID_CHARS_MAX).then(|| DeviceId::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ids: &BTreeSet<DeviceId>) -> Vec<&str> {
        ids.iter().map(DeviceId::as_str).collect()
    }

    #[test]
    fn a_known_id_anywhere_in_the_events_own_field_counts() {
        let known = BTreeSet::from([DeviceId::from("d1"), DeviceId::from("d2")]);
        for (payload, expected) in [
            (r#"{"deviceID":"d1"}"#, vec!["d1"]),
            (r#"{"a":[{"b":"d2"}],"c":"other"}"#, vec!["d2"]),
            (r#"{"d1":{}}"#, vec!["d1"]),
            (r#""d1""#, vec!["d1"]),
            (r#"{"deviceID":"d3"}"#, vec![]),
            (r#"{"name":"n"}"#, vec![]),
            ("not json", vec![]),
            (r#"{"name":"Laptop \ud83d","deviceID":"d1"}"#, vec!["d1"]),
        ] {
            let text = format!(r#"{{"header":{{"tokenInfo":{{"deviceID":"d2"}}}},"e":{payload}}}"#);
            assert_eq!(texts(&devices_in(&text, "e", &known)), expected, "{payload}");
        }
        assert!(devices_in("{}", "e", &known).is_empty());
    }

    #[test]
    fn an_id_counts_by_its_place() {
        let long = format!(r#""{}""#, "x".repeat(201));
        for (payload, expected) in [
            (r#"{"deviceID":"d1","name":"n","userID":"u"}"#, vec!["d1"]),
            (r#"{"device_id":"d1","id":"event"}"#, vec!["d1"]),
            (r#"{"device":{"id":"d1","name":"n"}}"#, vec!["d1"]),
            (r#"{"device":{"deviceID":"d1","id":"x"}}"#, vec!["d1"]),
            (r#"{"computer":"d1"}"#, vec!["d1"]),
            (r#"{"devices":[{"id":"d1"},{"id":"d2"}]}"#, vec!["d1", "d2"]),
            (r#"{"devices":["d1","d2"]}"#, vec!["d1", "d2"]),
            (r#"{"devices":{"d1":{"name":"n"},"d2":{}}}"#, vec!["d1", "d2"]),
            (r#"{"deviceIDs":["d1"],"users":["u"]}"#, vec!["d1"]),
            (r#"{"id":"d1","name":"n"}"#, vec!["d1"]),
            (r#"{"ids":["d1"]}"#, vec!["d1"]),
            (r#""d1""#, vec!["d1"]),
            (r#"{"deviceID":17}"#, vec!["17"]),
            (r#"{"deviceID":null}"#, vec![]),
            (r#"{"deviceID":""}"#, vec![]),
            (&format!(r#"{{"deviceID":{long}}}"#), vec![]),
            (r#"{"name":"n","userID":"u","target":"d1"}"#, vec![]),
            (r#"{"what":{"subject":"d1"}}"#, vec![]),
            ("{}", vec![]),
            ("null", vec![]),
        ] {
            let text = format!(r#"{{"header":{{"tokenInfo":{{"id":"t"}}}},"teamDeviceRemovedEvent":{payload}}}"#);
            assert_eq!(texts(&devices_named(&text, "teamDeviceRemovedEvent")), expected, "{payload}");
        }
        assert!(devices_named("not json", "teamDeviceRemovedEvent").is_empty());
    }

    #[test]
    fn a_value_that_a_parser_refuses_does_not_hide_the_computer() {
        let deep = format!("{}1{}", "[".repeat(1_000), "]".repeat(1_000));
        for odd in [r#""Laptop \ud83d""#, "1e400", &deep] {
            let text = format!(r#"{{"e":{{"odd":{odd},"deviceID":"d2","name":"Render 7"}},"header":{{"odd":{odd}}}}}"#);
            assert_eq!(texts(&devices_named(&text, "e")), ["d2"], "{odd}");
            assert_eq!(texts(&devices_in(&text, "e", &BTreeSet::from([DeviceId::from("d2")]))), ["d2"], "{odd}");
            assert_eq!(computer_name(&text, "e").as_deref(), Some("Render 7"), "{odd}");
        }
        assert_eq!(texts(&devices_named(r#"{"e":{"deviceID":"d1","deviceID":"d2"}}"#, "e")), ["d2"]);
    }

    #[test]
    fn a_computer_is_also_found_by_its_name() {
        let name = |payload: &str| computer_name(&format!(r#"{{"e":{payload}}}"#), "e");
        assert_eq!(name(r#"{"name":"Render 7"}"#).as_deref(), Some("Render 7"));
        assert_eq!(name(r#"{"device":{"name":"Render 7"},"name":"other"}"#).as_deref(), Some("Render 7"));
        assert_eq!(name(r#"{"computerName":"Render 7"}"#).as_deref(), Some("Render 7"));
        assert_eq!((name(r#"{"name":""}"#), name("{}"), name("[]")), (None, None, None));
    }

    #[test]
    fn only_removals_of_computers_are_removals() {
        assert!(is_removal("teamDeviceRemovedEvent") && is_removal("teamComputerDeletedEvent"));
        assert!(is_removal("teamDevicesRemovedEvent") && is_removal("teamComputersDeletedEvent"));
        assert!(is_addition("teamDevicesAddedEvent"));
        assert!(is_addition("teamDeviceAddedEvent") && !is_addition("teamDeviceRemovedEvent"));
        for other in [
            "teamUserRemovedEvent",
            "teamDeviceAddedEvent",
            "teamGroupDeviceRemovedEvent",
            "teamDeviceUserRemovedEvent",
            "teamDevicesUsersRemovedEvent",
            "teamDeviceAnnotationsDeletedEvent",
            "teamDeviceInviteDeletedEvent",
        ] {
            assert!(!is_removal(other), "{other}");
        }
    }
}

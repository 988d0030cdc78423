//! The sandbox's own requests about itself: clock, switches, faults, tokens, and its whole state.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::RawPathParams;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::model::Instant;

use super::admin::check;
use super::answer::{Refusal, json_value};
use super::choices::{Choices, NUMBERS};
use super::desk::read_body;
use super::mishaps::FaultRule;
use super::openapi;
use super::routes::{Op, Route};
use super::saved::Saved;
use super::tokens::Issued;
use super::world::World;

type Answer = Result<Response, Refusal>;

/// Serves one row of the table of routes.
pub(super) fn serve(
    world: &Arc<World>,
    route: &'static Route,
    path: &RawPathParams,
    headers: &HeaderMap,
    body: &Bytes,
) -> Answer {
    let fields = match route.op {
        Op::Clock | Op::Choices | Op::Faults | Op::Saved | Op::OpenApi => Map::new(),
        _ => read_body(headers, body, world.choices().require_content_type)?,
    };
    check(route.body, &fields, !route.body.is_empty())?;
    match route.op {
        Op::Clock => Ok(clock(world)),
        Op::SetClock => set_clock(world, &fields),
        Op::Choices => Ok(json_value(&json!(world.choices()))),
        Op::ChangeChoices => {
            world.set_choices(changed(world.choices(), fields)?);
            Ok(json_value(&json!(world.choices())))
        }
        Op::Faults => Ok(faults(world)),
        Op::SetFaults => {
            let rules = fields.get("rules").cloned().unwrap_or_default();
            world.mishaps.set(read::<Vec<FaultRule>>(rules)?);
            Ok(faults(world))
        }
        Op::IssueToken => issue(world, path, &fields),
        Op::Saved => Ok(json_value(&json!(Saved::of(world)))),
        Op::Load => {
            let taken_up = Saved::read(Value::Object(fields)).and_then(|saved| saved.restore(world));
            taken_up.map_err(|reason| Refusal::unreadable(reason.to_string()))?;
            Ok(clock(world))
        }
        Op::OpenApi => Ok(json_value(&openapi::description(&world.choices()))),
        other => unreachable!("BUG: {other:?} is not a request about the sandbox itself"),
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Refusal> {
    serde_json::from_value(value).map_err(|error| Refusal::unreadable(error.to_string()))
}

/// The switches with new values for the named ones.
pub(super) fn changed(choices: Choices, fields: Map<String, Value>) -> Result<Choices, Refusal> {
    let Value::Object(mut all) = json!(choices) else { return Ok(choices) };
    all.extend(fields);
    for (name, least, most) in NUMBERS {
        let sent = all.get(name).and_then(Value::as_u64);
        if let Some(sent) = sent.filter(|sent| !(least..=most).contains(sent)) {
            return Err(Refusal::unreadable(format!("{name} {sent} is not from {least} to {most}")));
        }
    }
    read(Value::Object(all))
}

fn clock(world: &World) -> Response {
    let now = world.clock.now();
    json_value(&json!({"now": now, "unixNano": now.nanos(), "speed": world.clock.speed()}))
}

fn set_clock(world: &World, fields: &Map<String, Value>) -> Answer {
    let now = fields.get("now").and_then(Value::as_str).map(|text| {
        text.parse::<Instant>().map_err(|error| Refusal::invalid(format!("now {text:?} is not a time: {error}")))
    });
    if let Some(now) = now.transpose()? {
        world.clock.set(now);
    }
    let number = |name: &str| fields.get(name).and_then(Value::as_u64);
    if let Some(seconds) = number("advanceSeconds") {
        world.clock.advance(Duration::from_secs(seconds));
    }
    if let Some(speed) = number("speed").and_then(|speed| u32::try_from(speed).ok()) {
        world.clock.set_speed(speed);
    }
    Ok(clock(world))
}

fn faults(world: &World) -> Response {
    json_value(&json!({"rules": world.mishaps.rules()}))
}

/// Issues a token for a person of a team, with the person's rights.
fn issue(world: &World, path: &RawPathParams, fields: &Map<String, Value>) -> Answer {
    let mut ids = path.iter().map(|(_, value)| value.to_owned());
    let (team, user) = (ids.next().unwrap_or_default(), ids.next().unwrap_or_default());
    let read_only = fields.get("readOnly").and_then(Value::as_bool).unwrap_or(false);
    let token = world.issue(Issued { team, user, read_only })?;
    let mut response = json_value(&json!({"token": token}));
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Reads switches from pairs `name=value` of the command line; the value is JSON or a bare word.
///
/// # Errors
/// When a pair has an unknown switch or an invalid value.
pub(super) fn choices_from(pairs: &[String]) -> Result<Choices, (String, String)> {
    let mut fields = Map::new();
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            return Err((pair.clone(), "the form is name=value".to_owned()));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        let changed = changed(Choices::default(), Map::from_iter([(name.to_owned(), value.clone())]));
        changed.map_err(|refusal| (pair.clone(), refusal.detail))?;
        fields.insert(name.to_owned(), value);
    }
    changed(Choices::default(), fields).map_err(|refusal| (pairs.join(" "), refusal.detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::choices::ErrorShape;

    #[test]
    fn every_switch_is_in_the_table_of_the_module_and_in_the_description() {
        let (table, all) = (include_str!("mod.rs"), json!(Choices::default()));
        let described = openapi::description(&Choices::default());
        let schema = &described["components"]["schemas"]["Choices"]["properties"];
        for name in all.as_object().unwrap().keys() {
            let row = table.lines().find(|line| line.starts_with("//! |") && line.contains(&format!("`{name}`")));
            assert!(row.is_some() && schema[name].is_object(), "{name}");
        }
        assert_eq!(schema.as_object().unwrap().len(), all.as_object().unwrap().len());
    }

    #[test]
    fn pairs_set_switches_and_an_invalid_pair_is_named_in_the_error() {
        let from = |pairs: &[&str]| choices_from(&pairs.iter().map(|pair| (*pair).to_owned()).collect::<Vec<_>>());
        let choices = from(&["default_limit=7", "error_shape=nested", "requests_per_minute=null"]).unwrap();
        assert_eq!((choices.default_limit, choices.error_shape), (7, ErrorShape::Nested));
        assert_eq!(from(&[]).unwrap(), Choices::default());
        for wrong in
            ["default_limit", "limit=7", "default_limit=many", "rule_status=200", "limit_max=0", "error_shape=loud"]
        {
            assert_eq!(from(&["default_desc=false", wrong]).unwrap_err().0, wrong);
        }
    }
}

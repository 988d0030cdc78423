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
use super::admin_requests::read_body;
use super::answer::{Refusal, json_value};
use super::fault_rules::FaultRule;
use super::issued::Issued;
use super::openapi;
use super::routes::{Op, Route};
use super::saved::Saved;
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
            world.set_choices(world.choices().with(fields).map_err(Refusal::unreadable)?);
            Ok(json_value(&json!(world.choices())))
        }
        Op::Faults => Ok(faults(world)),
        Op::SetFaults => {
            let rules = fields.get("rules").cloned().unwrap_or_default();
            world.fault_rules.set(read::<Vec<FaultRule>>(rules)?);
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
    json_value(&json!({"rules": world.fault_rules.rules()}))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::choices::Choices;

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
}

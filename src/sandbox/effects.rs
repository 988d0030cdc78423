//! Writes the effects of a change into the streams: activity, billing entries, connection events, deleted histories.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::model::{DeviceId, Instant, Stream};

use super::admin::{Actor, Caller, Effect, TeamState};
use super::overlay::TextEvent;
use super::team::Team;

/// Writes the effects of one change into the team's streams at `now`. The sandbox serves them after `delay`.
pub(super) fn publish(
    team: &Team,
    state: &mut TeamState,
    author: Option<&Value>,
    now: Instant,
    delay: Duration,
    effects: Vec<Effect>,
) {
    let visible_from = now.plus(delay);
    for effect in effects {
        match effect {
            Effect::Activity { name, payload } => {
                let raw = activity(author, now, name, payload);
                team.insert(Stream::Activity, TextEvent::new(raw, now, None, visible_from));
            }
            Effect::Billing(event) => {
                // Billing entries have times in whole seconds.
                let at = now.floor_second();
                let entry =
                    json!({"id": state.draw_id(), "teamid": state.id, "timestamp": at.seconds(), "event": event});
                team.insert(Stream::Billing, TextEvent::new(entry.to_string(), at, None, visible_from));
            }
            Effect::ComputerRemoved(id) => team.forget_computer(&DeviceId::from(id.as_str()), now),
            Effect::Connection { id, at_ms, device, host, kind, event } => {
                let entry =
                    json!({"id": id, "timestamp": at_ms, "deviceID": device, "computerHostName": host, kind: event});
                let at = Instant::from_nanos(at_ms.saturating_mul(1_000_000));
                let device = DeviceId::from(device.as_str());
                team.insert(Stream::Connections, TextEvent::new(entry.to_string(), at, Some(device), visible_from));
            }
        }
    }
}

/// `tokenInfo`: who made the change, if the service records it.
pub(super) fn token_info(caller: &Caller, actor: &Actor) -> Option<Value> {
    match actor {
        Actor::Caller => Some(json!({"userID": caller.user_id, "email": caller.email, "title": caller.title})),
        Actor::Person(id, email) => Some(json!({"userID": id, "email": email, "title": "dashboard session"})),
        Actor::Nobody => None,
    }
}

fn activity(author: Option<&Value>, now: Instant, name: &str, payload: Map<String, Value>) -> String {
    let mut header = json!({"eventTimestampUnixNano": now.nanos()});
    if let Some(token) = author {
        header["tokenInfo"] = token.clone();
    }
    json!({"header": header, name: payload}).to_string()
}

/// The event without its computer: the deprecated per-computer history does not name it.
pub(super) fn without_device(raw: &[u8]) -> Option<Vec<u8>> {
    let Ok(Value::Object(mut event)) = serde_json::from_slice::<Value>(raw) else { return None };
    event.remove("deviceID")?;
    Some(Value::Object(event).to_string().into_bytes())
}

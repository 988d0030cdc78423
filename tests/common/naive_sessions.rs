//! Computes sessions from the events' JSON without the program's code: slow, short and simple.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

struct Event {
    id: String,
    at: i64,
    kind: String,
    reason: Option<String>,
    details: Map<String, Value>,
}

const KINDS: [&str; 5] = [
    "incomingConnectionRequest",
    "incomingConnectionEvent",
    "authSucceededEvent",
    "authFailedEvent",
    "connectionClosedEvent",
];

/// The event and its connection; `None` if it names no connection.
fn read(raw: &[u8]) -> Option<(String, Event)> {
    let event: Value = serde_json::from_slice(raw).expect("JSON");
    let known = KINDS.iter().find(|kind| event.get(**kind).is_some()).map(|kind| (*kind).to_owned());
    let other =
        || event.as_object()?.iter().find(|(key, v)| key.ends_with("Event") && v.is_object()).map(|(k, _)| k.clone());
    let kind = known.or_else(other)?;
    let body = &event[&kind];
    let inner = body.get("associatedIncomingConnectionEvent").unwrap_or(body);
    let mut details = Map::new();
    for (name, value) in [
        ("device_id", &event["deviceID"]),
        ("computer_host_name", &event["computerHostName"]),
        ("tunnel_id", &inner["tunnelID"]),
        ("source_type", &inner["sourceType"]),
        ("peer_email", &inner["peerInfo"]["email"]),
        ("peer_ip", &inner["peerInfo"]["ipAddress"]),
        ("direct_ip", &inner["directConnectionInfo"]["ipaddress"]),
        ("local_user_name", &inner["localUserName"]),
    ] {
        details.insert(name.to_owned(), value.clone());
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (id, at) = (text(&event["id"])?, event["timestamp"].as_i64()?);
    let reason = (kind == KINDS[3]).then(|| text(&body["reason"])).flatten();
    Some((text(&inner["connectionID"])?, Event { id, at, kind, reason, details }))
}

/// Each session as one JSON object, by connection, with the view's columns except `team_id`; times are milliseconds.
pub fn sessions(truth: impl Iterator<Item = Vec<u8>>) -> BTreeMap<String, Value> {
    let mut connections: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for (connection, event) in truth.filter_map(|raw| read(&raw)) {
        connections.entry(connection).or_default().push(event);
    }
    let session = |(connection, events)| (String::clone(&connection), session(&connection, events));
    connections.into_iter().map(session).collect()
}

fn session(connection: &str, mut events: Vec<Event>) -> Value {
    events.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    let times = |kind: &str| events.iter().filter(|event| event.kind == kind).map(|event| event.at).collect::<Vec<_>>();
    let [requests, established, succeeded, failures, closes] = KINDS.map(times);
    let first = |times: &[i64]| times.first().copied();
    let (begun, closed) = (first(&established).or(first(&succeeded)), closes.last().copied());
    let outcome = if !failures.is_empty() && succeeded.is_empty() {
        "auth_failed"
    } else if begun.is_some() {
        if closed.is_some() { "ended" } else { "open" }
    } else if closed.is_some() {
        "closed_only"
    } else {
        "requested_only"
    };
    let duration = begun.zip(closed).map(|(begun, closed)| closed - begun).filter(|duration| *duration >= 0);
    let reasons: BTreeSet<&String> = events.iter().filter_map(|event| event.reason.as_ref()).collect();
    let mut row = json!({
        "connection_id": connection, "requested_at": first(&requests), "established_at": first(&established),
        "authenticated_at": first(&succeeded), "closed_at": closed, "first_event_at": events[0].at,
        "last_event_at": events[events.len() - 1].at, "duration_ms": duration, "outcome": outcome,
        "failed_attempts": failures.len(), "event_count": events.len(),
        "failure_reasons": if reasons.is_empty() { Value::Null } else { json!(json!(reasons).to_string()) },
    });
    let mut conflicts = Map::new();
    for name in events[0].details.keys() {
        let values: Vec<&str> = events.iter().filter_map(|event| event.details[name].as_str()).collect();
        let distinct: BTreeSet<&&str> = values.iter().collect();
        row[name] = json!(values.first());
        if distinct.len() > 1 {
            conflicts.insert(name.clone(), json!(distinct));
        }
    }
    row["conflicts"] = if conflicts.is_empty() { Value::Null } else { json!(Value::Object(conflicts).to_string()) };
    row
}

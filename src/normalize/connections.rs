//! Connections: five documented event fields, and the details of the connection, which can be in several places.

use std::borrow::Cow;

use crate::api::outline::ObjectView;
use crate::model::{ConnectionTexts, DeviceId, Reject};

use super::reject::{exactly_one, two_event_fields};

const KNOWN_TYPES: [&str; 5] = [
    "incomingConnectionRequest",
    "incomingConnectionEvent",
    "authSucceededEvent",
    "authFailedEvent",
    "connectionClosedEvent",
];
const ASSOCIATED: &str = "associatedIncomingConnectionEvent";
/// Fields that are never a type.
const NOT_TYPES: [&str; 7] =
    ["id", "timestamp", "deviceID", "computerHostName", ASSOCIATED, "peerInfo", "directConnectionInfo"];

/// The details of a connection, in the order of [`ConnectionTexts`].
type Texts<'a> = [Option<Cow<'a, str>>; ConnectionTexts::COUNT];

/// The event's type, and its columns. `asked` is the requested computer.
pub(super) fn read<'e, 'a>(
    event: ObjectView<'e, 'a>,
    asked: Option<&'a DeviceId>,
) -> Result<(&'e str, Texts<'a>), Reject> {
    let event_type = event_type(event)?;
    let Found { texts, objects } = Found::in_places(event, event_type);
    let [peer, direct] = objects;
    let failed = if event_type == "authFailedEvent" { event.object(event_type) } else { None };
    let [connection_id, tunnel_id, source_type, local_user_name] = texts;
    let texts = [
        connection_id,
        event.string("deviceID").or_else(|| Some(Cow::Borrowed(asked?.as_str()))),
        event.string("computerHostName"),
        tunnel_id,
        source_type,
        peer.and_then(|peer| peer.string("email")),
        peer.and_then(|peer| peer.string("ipAddress")),
        direct.and_then(|direct| direct.string("ipaddress")),
        local_user_name,
        failed.and_then(|failed| failed.string("reason")),
    ];
    Ok((event_type, texts))
}

/// The documented field; without one, the only unknown object, with event-like names first.
fn event_type<'e>(event: ObjectView<'e, '_>) -> Result<&'e str, Reject> {
    let mut seen = [false; KNOWN_TYPES.len()];
    let mut last = None;
    // Empty for every documented event, so it needs no memory.
    let mut before: Vec<&str> = Vec::new();
    for value in event.backwards() {
        let key = value.key();
        let Some(at) = KNOWN_TYPES.iter().position(|name| *name == key) else { continue };
        if std::mem::replace(&mut seen[at], true) || value.text() == "null" {
            continue;
        }
        match last {
            None => last = Some(key),
            Some(_) => before.push(key),
        }
    }
    match last {
        None => {}
        Some(name) if before.is_empty() => return Ok(name),
        Some(name) => return Err(two_event_fields(&before.into_iter().rev().chain([name]).collect::<Vec<_>>())),
    }
    let unknown: Vec<&str> = event
        .fields()
        .into_iter()
        .filter(|(key, text)| !NOT_TYPES.contains(key) && text.starts_with('{'))
        .map(|(key, _)| key)
        .collect();
    let named: Vec<&str> =
        unknown.iter().copied().filter(|key| key.ends_with("Event") || key.ends_with("Request")).collect();
    exactly_one(if named.is_empty() { &unknown } else { &named })
}

/// The objects with details. The nearest object of each name counts, so that details of one peer are not mixed with those of
/// another.
#[derive(Default)]
struct Found<'o, 'a> {
    texts: [Option<Cow<'a, str>>; 4],
    objects: [Option<ObjectView<'o, 'a>>; 2],
}

impl<'o, 'a> Found<'o, 'a> {
    fn in_places(event: ObjectView<'o, 'a>, event_type: &str) -> Self {
        let mut found = Self::default();
        places(event, event_type).into_iter().flatten().for_each(|place| found.add(place));
        found
    }

    fn add(&mut self, place: ObjectView<'o, 'a>) {
        let mut seen = [false; 6];
        for value in place.backwards() {
            let at = match value.key() {
                "connectionID" => 0,
                "tunnelID" => 1,
                "sourceType" => 2,
                "localUserName" => 3,
                "peerInfo" => 4,
                "directConnectionInfo" => 5,
                _ => continue,
            };
            if std::mem::replace(&mut seen[at], true) || value.text() == "null" {
                continue;
            }
            if let Some(held) = self.texts.get_mut(at) {
                *held = held.take().or_else(|| value.string());
            } else {
                let held = &mut self.objects[at - self.texts.len()];
                *held = held.take().or_else(|| value.object());
            }
        }
    }
}

/// The places of details, nearest first: the event field, the associated connection event (which can be a whole event with its own
/// event field), the top.
fn places<'o, 'a>(event: ObjectView<'o, 'a>, event_type: &str) -> [Option<ObjectView<'o, 'a>>; 4] {
    let field = event.object(event_type);
    let associated = field.and_then(|field| field.object(ASSOCIATED)).or_else(|| event.object(ASSOCIATED));
    let nested = associated.and_then(|associated| KNOWN_TYPES.iter().find_map(|name| associated.object(name)));
    [field, associated, nested, Some(event)]
}

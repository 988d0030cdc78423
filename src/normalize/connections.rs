//! Connections: five documented event fields, and the details of the connection wherever the event carries them.

use std::borrow::Cow;

use crate::api::json::Object;
use crate::model::{ConnectionDetail, ConnectionId, Detail, DeviceId};

use super::reject::{Reject, exactly_one, two_event_fields};

const KNOWN_TYPES: [&str; 5] = [
    "incomingConnectionRequest",
    "incomingConnectionEvent",
    "authSucceededEvent",
    "authFailedEvent",
    "connectionClosedEvent",
];
const ASSOCIATED: &str = "associatedIncomingConnectionEvent";
/// Fields that never name a type.
const NOT_TYPES: [&str; 7] =
    ["id", "timestamp", "deviceID", "computerHostName", ASSOCIATED, "peerInfo", "directConnectionInfo"];

pub(super) fn read(event: &Object<'_>, asked: Option<&DeviceId>) -> Result<(String, Detail), Reject> {
    let event_type = event_type(event)?;
    let places = Places::of(event, event_type);
    let text = |key: &str| places.iter().find_map(|place| place.string(key)).map(Cow::into_owned);
    // The nearest object of each name: details of one peer are not mixed with those of another.
    let peer = places.object("peerInfo");
    let direct = places.object("directConnectionInfo");
    let failed = if event_type == "authFailedEvent" { event.object(event_type) } else { None };
    let inner = |object: &Option<Object<'_>>, key: &str| object.as_ref()?.string(key).map(Cow::into_owned);
    let device_id = event.string("deviceID").map(|id| DeviceId::new(id.as_ref()));
    let detail = ConnectionDetail {
        connection_id: text("connectionID").map(ConnectionId::new),
        device_id: device_id.or_else(|| asked.cloned()),
        computer_host_name: event.string("computerHostName").map(Cow::into_owned),
        tunnel_id: text("tunnelID"),
        source_type: text("sourceType"),
        peer_email: inner(&peer, "email"),
        peer_ip: inner(&peer, "ipAddress"),
        direct_ip: inner(&direct, "ipaddress"),
        local_user_name: text("localUserName"),
        failure_reason: inner(&failed, "reason"),
    };
    Ok((event_type.to_owned(), Detail::Connections(Box::new(detail))))
}

/// The documented field; where there is none, the one unknown object, those named like an event first.
fn event_type<'e>(event: &'e Object<'_>) -> Result<&'e str, Reject> {
    let known: Vec<&str> = event.fields().map(|(key, _)| key).filter(|key| KNOWN_TYPES.contains(key)).collect();
    match known[..] {
        [] => {}
        [name] => return Ok(name),
        _ => return Err(two_event_fields(&known)),
    }
    let unknown: Vec<&str> = event
        .fields()
        .filter(|(key, text)| !NOT_TYPES.contains(key) && text.starts_with('{'))
        .map(|(key, _)| key)
        .collect();
    let named: Vec<&str> =
        unknown.iter().copied().filter(|key| key.ends_with("Event") || key.ends_with("Request")).collect();
    exactly_one(if named.is_empty() { &unknown } else { &named })
}

/// Where details may stand, the nearest first: in the event field, in the connection event associated with it (which may
/// be a whole event with its own event field), at the top.
struct Places<'e, 'a> {
    inner: Vec<Object<'a>>,
    top: &'e Object<'a>,
}

impl<'e, 'a> Places<'e, 'a> {
    fn of(event: &'e Object<'a>, event_type: &str) -> Self {
        let mut inner = Vec::with_capacity(3);
        let field = event.object(event_type);
        let associated = field.as_ref().and_then(|field| field.object(ASSOCIATED));
        inner.extend(field);
        if let Some(associated) = associated.or_else(|| event.object(ASSOCIATED)) {
            let nested = KNOWN_TYPES.iter().find_map(|name| associated.object(name));
            inner.push(associated);
            inner.extend(nested);
        }
        Self { inner, top: event }
    }

    fn object(&self, key: &str) -> Option<Object<'a>> {
        self.iter().find_map(|place| place.object(key))
    }

    fn iter(&self) -> impl Iterator<Item = &Object<'a>> {
        self.inner.iter().chain([self.top])
    }
}

//! The JSON texts of events. No serializer would write them this way, so only a byte-for-byte copy is equal.

/// The planted secret, which only secret fields contain.
pub const SECRET: &str = "PLANTED-9d1f";

const KINDS: [&str; 5] = [
    "incomingConnectionRequest",
    "incomingConnectionEvent",
    "authSucceededEvent",
    "authFailedEvent",
    "connectionClosedEvent",
];

/// One event of a connection. `at` in milliseconds; `kind` is its step.
pub struct Step<'a> {
    pub id: &'a str,
    pub connection: &'a str,
    pub kind: usize,
    pub at: i64,
    /// `None` in the deprecated history.
    pub device: Option<&'a str>,
    pub number: u32,
}

impl Step<'_> {
    pub fn text(&self) -> String {
        let Step { id, connection, kind, at, device, number } = self;
        let details = format!(
            r#""connectionID":"{connection}", "tunnelID":"fluid","sourceType":"cloud","peerInfo":{{"email":"p{}@example.com","ipAddress":"192.0.2.{}"}}"#,
            number % 7,
            number % 250
        );
        let inside = match kind {
            0 | 1 => details,
            3 => format!(r#""reason":"no {}","associatedIncomingConnectionEvent":{{{details}}}"#, number % 3),
            _ => format!(r#""associatedIncomingConnectionEvent":{{{details}}}"#),
        };
        let device = device.map(|id| format!(r#""deviceID":"{id}","#)).unwrap_or_default();
        let note = ["\"\\u00e4\\/\"", "1.50e2", "\"Zoë ✓\"", "{ \"a\":[ ]}"][(number % 4) as usize];
        format!(
            r#"{{"id":"{id}","timestamp":{at},{device}"computerHostName":"host","{}":{{{inside}}},"clientInfo":{note}}}"#,
            KINDS[*kind]
        )
    }
}

/// Events without a connection, without an id, or of an unknown kind.
pub fn unusual_connection(number: u32, at: i64, device: &str) -> String {
    match number % 4 {
        0 => {
            format!(r#"{{"id":"odd-{number}","timestamp":{at},"deviceID":"{device}","incomingConnectionEvent":{{}}}}"#)
        }
        1 => format!(r#"{{"timestamp":{at},"deviceID":"{device}","somethingNewEvent":{{"n":{number}}}}}"#),
        2 => format!(r#"{{"id":"odd-{number}","timestamp":{at},"deviceID":"{device}"}}"#),
        _ => format!(
            r#"{{"id":"odd-{number}","timestamp":{at},"deviceID":"{device}","authFailedEvent":{{}},"connectionClosedEvent":{{}}}}"#
        ),
    }
}

/// `time` is the JSON text of the time.
pub fn activity(name: &str, time: &str, number: u32) -> String {
    format!(r#"{{"header": {{"eventTimestampUnixNano":{time}}},"{name}":{{"user":"u{}", "n":{number}}}}}"#, number % 5)
}

/// An activity event with a text of this many bytes in it.
pub fn large(time: i64, number: u32, bytes: usize) -> String {
    let note = "n".repeat(bytes);
    format!(r#"{{"header":{{"eventTimestampUnixNano":{time}}},"teamNoteAddedEvent":{{"n":{number},"note":"{note}"}}}}"#)
}

pub fn twin(time: i64) -> String {
    format!(r#"{{"header":{{"eventTimestampUnixNano":{time}}} ,"teamUserLoggedInEvent":{{"user":"u1"}}}}"#)
}

pub fn removal(time: i64, device: &str) -> String {
    removal_as(time, device, Shape::Inside)
}

/// How a removal event names its computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Inside,
    Beside,
    List,
    OddPlace,
    Name,
    Nothing,
}

impl Shape {
    pub const ALL: [Self; 6] = [Self::Inside, Self::Beside, Self::List, Self::OddPlace, Self::Name, Self::Nothing];
}

pub fn removal_as(time: i64, device: &str, shape: Shape) -> String {
    let payload = match shape {
        Shape::Inside => format!(r#"{{"device":{{"id":"{device}"}}}}"#),
        Shape::Beside => format!(r#"{{"deviceID": "{device}","name":"pc {device}","userID":"u1"}}"#),
        Shape::List => format!(r#"{{"devices":["{device}"]}}"#),
        Shape::OddPlace => format!(r#"{{"what":{{"subject":"{device}"}}}}"#),
        Shape::Name => format!(r#"{{"name":"pc {device}"}}"#),
        Shape::Nothing => "{}".to_owned(),
    };
    format!(r#"{{"header":{{"eventTimestampUnixNano":{time}}},"teamDeviceRemovedEvent":{payload}}}"#)
}

pub fn addition(time: i64, device: &str) -> String {
    format!(
        r#"{{"header":{{"eventTimestampUnixNano":{time}}},"teamDeviceAddedEvent":{{"deviceID":"{device}","name":"pc {device}"}}}}"#
    )
}

pub fn secret(time: i64, number: u32) -> String {
    format!(
        r#"{{"header":{{"eventTimestampUnixNano":{time}}},"teamDeviceInviteAddedEvent":{{"secret":"{SECRET}-{number}"}}}}"#
    )
}

/// `at` in seconds.
pub fn billing(id: Option<u32>, at: i64, name: &str) -> String {
    let id = id.map(|id| format!(r#""id":"bill-{id}","#)).unwrap_or_default();
    format!(r#"{{{id}"teamid":"t","timestamp":{at},"event":{{"{name}":{{"users": 3}}}}}}"#)
}

/// The text that the archive may keep.
pub fn kept(text: &str) -> String {
    match text.split_once(&format!("\"{SECRET}")) {
        Some((before, after)) => {
            let rest = after.split_once('"').map_or("", |(_, rest)| rest);
            format!("{before}\"[redacted]\"{rest}")
        }
        None => text.to_owned(),
    }
}

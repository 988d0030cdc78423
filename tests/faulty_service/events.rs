//! Event texts: valid JSON with uneven spacing, escapes and unknown fields, so only a byte-for-byte copy is equal.

/// A part that differs in every event. No serializer would write it this way.
fn flourish(number: u64) -> String {
    match number % 5 {
        0 => format!("\"note\" :\"\\u00e4\\/{number}\""),
        1 => format!("\"note\":  \"Zoë ✓ {number}\""),
        2 => format!("\"big\":1.50e2,\"note\":\"{number}\""),
        3 => format!("\"nested\":{{ \"b\":1,\"a\":[ ]}},\"note\":\"'{number}'\""),
        _ => format!("\"note\":\"{number}\", \"nothing\":null"),
    }
}

/// Times in milliseconds.
pub fn connection(number: u64, at: i64, device: &str) -> String {
    connection_with(&format!("\"id\":\"ce-{number}\","), number, at, &format!("\"deviceID\":\"{device}\","))
}

/// The event without `deviceID`, as in the deprecated history.
pub fn connection_deprecated(number: u64, at: i64) -> String {
    connection_with(&format!("\"id\":\"ce-{number}\","), number, at, "")
}

/// The event without `id`.
pub fn connection_without_id(number: u64, at: i64, device: &str) -> String {
    connection_with("", number, at, &format!("\"deviceID\":\"{device}\","))
}

fn connection_with(id: &str, number: u64, at: i64, device: &str) -> String {
    let details = format!(
        "\"connectionID\":\"conn-{}\",\"tunnelID\":\"fluid\",\"sourceType\":\"cloud\",\
         \"peerInfo\":{{\"email\":\"p{}@example.com\",\"ipAddress\":\"192.0.2.{}\"}}",
        number / 3,
        number % 7,
        number % 250
    );
    let field = match number % 3 {
        0 => format!("\"incomingConnectionRequest\":{{{details}}}"),
        1 => format!("\"incomingConnectionEvent\":{{{details}}}"),
        _ => format!("\"connectionClosedEvent\":{{\"associatedIncomingConnectionEvent\":{{{details}}}}}"),
    };
    format!("{{{id}\"timestamp\":{at},{device}\"computerHostName\":\"host\",{field},{}}}", flourish_in_event(number))
}

/// Unknown fields stay inside names that are certainly no event fields, because a reader might take others for a
/// second event field.
fn flourish_in_event(number: u64) -> String {
    format!("\"clientInfo\":{{{}}}", flourish(number))
}

/// Time in nanoseconds.
pub fn activity(number: u64, at: i64) -> String {
    let name = ["teamUserAddedEvent", "teamSettingsChangedEvent", "teamUserLoggedInEvent"][(number % 3) as usize];
    typed_activity(name, number, at)
}

pub fn typed_activity(name: &str, number: u64, at: i64) -> String {
    format!("{{\"header\":{{\"eventTimestampUnixNano\":{at}}},\"{name}\":{{{}}}}}", flourish(number))
}

/// Events of the same moment are equal.
pub fn plain_activity(at: i64) -> String {
    format!("{{\"header\": {{\"eventTimestampUnixNano\":{at}}},\"teamUserLoggedInEvent\":{{\"user\":\"u1\"}}}}")
}

pub fn removal(number: u64, at: i64, device: &str) -> String {
    format!(
        "{{\"header\":{{\"eventTimestampUnixNano\":{at}}},\"teamDeviceRemovedEvent\":{{\"device\":{{\"id\":\"{device}\"}},{}}}}}",
        flourish(number)
    )
}

pub fn activity_event(name: &str, at: i64, payload: &str) -> String {
    format!("{{\"header\":{{\"eventTimestampUnixNano\":{at}}},\"{name}\":{payload}}}")
}

/// Time in seconds.
pub fn billing(number: u64, at: i64, name: &str) -> String {
    format!(
        "{{\"id\":\"bill-{number}\",\"teamid\":\"team-one\",\"timestamp\":{at},\"event\":{{\"{name}\":{{{}}}}}}}",
        flourish(number)
    )
}

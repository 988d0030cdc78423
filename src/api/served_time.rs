//! Takes the event time and the id from an event's text.

use crate::model::{EventId, Instant, RejectReason, ServedTime, Stream};

use super::json::{self, Object};

/// The event time of an object.
pub fn of(stream: Stream, event: &Object<'_>) -> ServedTime {
    let (name, text) = match stream {
        Stream::Activity => ("header.eventTimestampUnixNano", activity_time(event)),
        Stream::Connections | Stream::Billing => ("timestamp", event.get("timestamp")),
    };
    let Some(text) = text else {
        return ServedTime::unusable(RejectReason::TimeMissing, format!("the field `{name}` is missing or null"));
    };
    if !is_integer(text) {
        let kind =
            if json::kind(text) == "a number" { "a number with a fraction or exponent" } else { json::kind(text) };
        return ServedTime::unusable(RejectReason::TimeNotInteger, format!("the field `{name}` is {kind}"));
    }
    let Ok(value) = text.parse::<i64>() else {
        return ServedTime::unusable(RejectReason::TimeOutOfRange, format!("the field `{name}` does not fit 64 bits"));
    };
    match Instant::from_unit(value, stream.time_unit()) {
        Ok(at) => ServedTime::At(at),
        Err(error) => ServedTime::unusable(RejectReason::TimeOutOfRange, error.to_string()),
    }
}

fn activity_time<'a>(event: &Object<'a>) -> Option<&'a str> {
    event.object("header")?.get("eventTimestampUnixNano")
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The service's own id: a string, or the JSON text of another value. The document gives activity no id, so activity has none
/// here.
pub fn id(stream: Stream, event: &Object<'_>) -> Option<EventId> {
    if stream == Stream::Activity {
        return None;
    }
    let text = event.get("id")?;
    match json::string(text) {
        Some(id) if id.is_empty() => None,
        Some(id) => Some(EventId::new(id.as_ref())),
        None => Some(EventId::new(text)),
    }
}

//! Parses answers. Each event keeps its bytes exactly as served, except for secrets: the bytes are slices of the body, found by a
//! scan, and never parsed and written again.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::model::{DeviceId, RawEvent, RejectReason, ServedTime, Stream, TeamId};

use super::contract::{BillingSnapshot, Computers, Page, TeamView, UnfilteredJson};
use super::json::{self, Object};
use super::known_tokens::{self, KnownTokens};
use super::{redact, served_time};

/// A longer plan span is ignored as invalid.
const PLAN_SPAN_SECONDS_MAX: u64 = 100 * 366 * 86_400;

/// The answer does not have the documented form. The text quotes nothing of the body.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct WireError(pub(super) String);

/// One page of a windowed stream. With `device`, the deprecated history of that computer.
///
/// # Errors
/// When the body is not an object with the stream's list. No item of the list is an error.
pub fn page(stream: Stream, device: Option<&DeviceId>, body: &Bytes) -> Result<Page, WireError> {
    page_redacted(&KnownTokens::default(), stream, device, body)
}

/// Like [`page`], and removes these tokens.
///
/// # Errors
/// As [`page`].
pub(super) fn page_redacted(
    known: &KnownTokens,
    stream: Stream,
    device: Option<&DeviceId>,
    body: &Bytes,
) -> Result<Page, WireError> {
    let list = if stream == Stream::Connections && device.is_none() { "deviceEvents" } else { "events" };
    let mut page = read_list(known, stream, list, body)?;
    if let Some(device) = device {
        page.events.iter_mut().for_each(|event| event.device = Some(device.clone()));
    }
    Ok(page)
}

/// The newest billing entries.
///
/// # Errors
/// When the body is not an object with a list `events`.
pub fn billing(body: &Bytes) -> Result<BillingSnapshot, WireError> {
    billing_redacted(&KnownTokens::default(), body)
}

/// Like [`billing`], and removes these tokens.
///
/// # Errors
/// As [`billing`].
pub(super) fn billing_redacted(known: &KnownTokens, body: &Bytes) -> Result<BillingSnapshot, WireError> {
    let page = read_list(known, Stream::Billing, "events", body)?;
    Ok(BillingSnapshot { events: page.events })
}

/// The event in a text that holds a single event, as in an archive.
///
/// # Errors
/// When no service can have served this text.
pub fn single_event(stream: Stream, text: &[u8]) -> Result<Vec<RawEvent>, WireError> {
    let body = [br#"{"events":["#, text, b"]}"].concat();
    Ok(read_list(&KnownTokens::default(), stream, "events", &body.into())?.events)
}

/// The ids of the teams that the token sees.
///
/// # Errors
/// When the body is not a list of strings.
pub fn teams(body: &[u8]) -> Result<Vec<TeamId>, WireError> {
    let ids: Vec<String> = parse(utf8(body)?, "a list of team ids")?;
    Ok(ids.into_iter().map(TeamId::new).collect())
}

/// The facts about a team that reading needs. Skips invites, installers and their secrets.
///
/// # Errors
/// When the body is not an object.
pub fn team(body: &[u8]) -> Result<TeamView, WireError> {
    let text = utf8(body)?;
    let team: Object<'_> = parse(text, "an object with a team")?;
    let span = team.object("planFeatures").and_then(|plan| plan.get("deviceEventsMaxRetrievalDuration"));
    let seconds = span.and_then(|text| text.parse::<u64>().ok()).filter(|s| (1..=PLAN_SPAN_SECONDS_MAX).contains(s));
    Ok(TeamView {
        name: team.string("name").map(Cow::into_owned),
        plan_span: seconds.map(Duration::from_secs),
        whole: UnfilteredJson::new(text),
    })
}

/// The team's computers.
///
/// # Errors
/// When the body is not an object with a list `devices` of objects with an `id`. If Annals skipped a computer, it would look
/// removed.
pub fn devices(body: &[u8]) -> Result<Computers, WireError> {
    let expected = "an object with a list `devices`";
    let text = utf8(body)?;
    let answer: Object<'_> = parse(text, expected)?;
    let list = answer.get("devices").ok_or_else(|| WireError("the list `devices` is missing".into()))?;
    let devices: Vec<Object<'_>> = parse(list, expected)?;
    let id = |device: &Object<'_>| device.string("id").map(|id| DeviceId::new(id.as_ref()));
    let ids = devices.iter().map(|d| id(d).ok_or_else(|| WireError("a computer without an id".into())));
    Ok(Computers { ids: ids.collect::<Result<_, _>>()?, whole: UnfilteredJson::new(text) })
}

pub(super) fn utf8(body: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(body).map_err(|e| WireError(format!("not UTF-8 at byte {}", e.valid_up_to())))
}

pub(super) fn parse<'a, T: serde::Deserialize<'a>>(text: &'a str, expected: &str) -> Result<T, WireError> {
    serde_json::from_str(text).map_err(|error| wire_error(text, &error, expected))
}

/// Unlike serde's own errors, these do not quote the body.
fn wire_error(text: &str, error: &serde_json::Error, expected: &str) -> WireError {
    let (line, column) = (error.line(), error.column());
    WireError(match (text.trim_start().bytes().next(), error.classify()) {
        (None, _) => "the body is empty".into(),
        (Some(b'<'), _) => "an HTML or XML page".into(),
        (_, Category::Eof) => format!("JSON that breaks off at line {line} column {column}"),
        (_, Category::Data) => format!("not {expected}"),
        _ => format!("not JSON at line {line} column {column}"),
    })
}

/// Parses the answer. If strings in it contain bytes that UTF-8 or JSON forbids, parses a masked copy of the same length. So one
/// bad event does not spoil the page, and offsets are equal in both.
fn read_list(known: &KnownTokens, stream: Stream, list: &'static str, body: &Bytes) -> Result<Page, WireError> {
    let first = match std::str::from_utf8(body) {
        Ok(text) => match read_answer(list, text) {
            Ok(answer) => return page_of(known, stream, list, (body, text), answer),
            Err(error) => error,
        },
        Err(error) => WireError(format!("not UTF-8 at byte {}", error.valid_up_to())),
    };
    let Some(masked) = masked(body) else { return Err(first) };
    let answer = read_answer(list, &masked)?;
    page_of(known, stream, list, (body, &masked), answer)
}

fn read_answer<'a>(list: &'static str, text: &'a str) -> Result<Answer<'a>, WireError> {
    let expected = format!("an object with a list `{list}`");
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let answer = AnswerSeed { list }.deserialize(&mut deserializer).map_err(|e| wire_error(text, &e, &expected))?;
    deserializer.end().map_err(|e| wire_error(text, &e, &expected))?;
    Ok(answer)
}

fn page_of(
    known: &KnownTokens,
    stream: Stream,
    list: &str,
    (body, text): (&Bytes, &str),
    answer: Answer<'_>,
) -> Result<Page, WireError> {
    let mut lists = answer.lists.into_iter();
    let events = match (lists.next(), lists.next()) {
        (Some(events), None) => events,
        (None, _) => return Err(WireError(format!("the list `{list}` is missing"))),
        (Some(_), Some(_)) => return Err(WireError(format!("the list `{list}` occurs twice"))),
    };
    if events.is_empty() && answer.has_error {
        return Err(WireError(format!("an error beside the empty list `{list}`")));
    }
    let known = Some(known).filter(|known| known.may_be_in(body));
    let events = events.iter().map(|event| {
        let range = json::range_in(text, event.get());
        match known {
            Some(known) => read_event_redacted(known, stream, body.slice(range), event.get()),
            None => read_event(stream, body.slice(range), event.get()),
        }
    });
    Ok(Page {
        events: events.collect(),
        has_more: answer.has_more.and_then(|text| text.parse().ok()),
        next_offset: answer.next_offset.and_then(|text| text.parse().ok()),
        body: body.clone(),
    })
}

/// One event that can contain a token.
fn read_event_redacted(known: &KnownTokens, stream: Stream, served: Bytes, text: &str) -> RawEvent {
    let edits = if known.may_be_in(text.as_bytes()) { known.edits(text) } else { Vec::new() };
    if edits.is_empty() {
        return read_event(stream, served, text);
    }
    let cleaned = redact::replace(text.as_bytes(), &edits);
    let cleaned = String::from_utf8(cleaned).expect("BUG: whole characters were replaced");
    let event = read_event(stream, redact::replace(&served, &edits).into(), &cleaned);
    // A changed id is not the service's id.
    let id = event.id.filter(|id| !known_tokens::is_redacted(id.as_str()));
    RawEvent { redacted: true, id, ..event }
}

/// One event. `text` is `served`, or a masked copy of it: valid JSON of the same length.
fn read_event(stream: Stream, served: Bytes, text: &str) -> RawEvent {
    let (time, id) = match Object::parse(text) {
        Some(event) => {
            // A masked id is not the service's id.
            let whole = event.get("id").is_none_or(|id| served[json::range_in(text, id)] == *id.as_bytes());
            let id = if whole { served_time::id(stream, &event) } else { None };
            (served_time::of(stream, &event), id)
        }
        None => (ServedTime::unusable(RejectReason::NotAnObject, format!("the event is {}", json::kind(text))), None),
    };
    let secrets = redact::secrets(text);
    let is_json = served == text.as_bytes();
    let event = match secrets.as_slice() {
        [] => RawEvent::new(served, false, id, time),
        secrets => RawEvent::new(redact::replace(&served, secrets).into(), true, id, time),
    };
    RawEvent { is_json, ..event }
}

/// A copy of the same length with `?` for every byte that is not UTF-8 and, inside strings, for every control character and
/// every start of an invalid escape. `None` if there are none.
fn masked(body: &[u8]) -> Option<String> {
    let mut copy = Vec::with_capacity(body.len());
    for chunk in body.utf8_chunks() {
        copy.extend_from_slice(chunk.valid().as_bytes());
        copy.resize(copy.len() + chunk.invalid().len(), b'?');
    }
    mask_strings(&mut copy);
    if copy == body {
        return None;
    }
    Some(String::from_utf8(copy).expect("BUG: invalid UTF-8 was masked"))
}

fn mask_strings(text: &mut [u8]) {
    let (mut at, mut inside) = (0, false);
    while let Some(&byte) = text.get(at) {
        let mut step = 1;
        match byte {
            b'"' => inside = !inside,
            b'\\' if inside => match escape_length(&text[at..]) {
                Some(length) => step = length,
                None => text[at] = b'?',
            },
            0..0x20 if inside => text[at] = b'?',
            _ => {}
        }
        at += step;
    }
}

/// The length of the escape at the start of `text`; `None` if it is invalid.
fn escape_length(text: &[u8]) -> Option<usize> {
    match text.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => text.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

/// The fields of an answer that Annals reads. Each list is under its own name, so that a missing list is noticed.
struct Answer<'a> {
    lists: Vec<Vec<&'a RawValue>>,
    has_more: Option<&'a str>,
    next_offset: Option<&'a str>,
    /// The answer holds an error, too.
    has_error: bool,
}

struct AnswerSeed {
    list: &'static str,
}

impl<'de> DeserializeSeed<'de> for AnswerSeed {
    type Value = Answer<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for AnswerSeed {
    type Value = Answer<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut answer = Answer { lists: Vec::new(), has_more: None, next_offset: None, has_error: false };
        while let Some(key) = map.next_key::<&RawValue>()? {
            match json::string(key.get()).as_deref() {
                Some(key) if key == self.list => answer.lists.push(map.next_value()?),
                Some("hasMoreEvents") => answer.has_more = Some(map.next_value::<&RawValue>()?.get()),
                Some("nextOffset") => answer.next_offset = Some(map.next_value::<&RawValue>()?.get()),
                Some("code" | "error" | "errors") => {
                    let value = map.next_value::<&RawValue>()?.get();
                    answer.has_error |= !matches!(value, "null" | "false" | "0" | "\"\"" | "[]" | "{}");
                }
                _ => _ = map.next_value::<&RawValue>()?,
            }
        }
        Ok(answer)
    }
}

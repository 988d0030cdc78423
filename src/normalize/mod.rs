//! Converts served events to rows: one event becomes a typed row, or a reject with its reason. Pure. Missing values stay empty;
//! repeated or wrong ones never cause a panic. Unknown types and fields are normal.

mod activity;
mod billing;
mod computers;
mod connections;
mod reject;

use crate::api::json::Object;
use crate::api::outline::Outline;
use crate::model::{
    Detail, EventId, EventRow, Instant, RawEvent, RawText, Reject, RejectRow, ServedTime, Stream, TeamId, Text,
};

pub use computers::{computer_name, devices_in, devices_named, is_addition, is_removal};

/// The archived id of an event: the service's own, else `<32 digits of the content hash>-<occurrence>`.
/// `occurrence` counts equal events of one window from 1.
pub fn event_id(event: &RawEvent, occurrence: u32) -> EventId {
    match &event.id {
        Some(id) => id.clone(),
        None => EventId::new(format!("{}-{occurrence}", event.digest.content_id())),
    }
}

/// The values of an event's columns, or the reason why it has none.
#[derive(Clone)]
pub struct Parsed(Result<(Instant, Text, Detail), Reject>);

/// Reads the values of an event's columns. Takes most of the time of [`normalize`].
pub fn parse(stream: Stream, event: &RawEvent) -> Parsed {
    Parsed(read(stream, event))
}

/// The row of an event, or the reject that is kept instead.
///
/// `parsed` comes from [`parse`]. `revision` is 1 for the first content seen under an id. `first_seen_at` is the time of the
/// answer with the event.
///
/// # Errors
/// When the event is not UTF-8, is not an object, has no usable time, or has not exactly one event field.
pub fn normalize(
    team: &TeamId,
    stream: Stream,
    (event, parsed): (&RawEvent, Parsed),
    occurrence: u32,
    revision: u32,
    first_seen_at: Instant,
) -> Result<EventRow, Box<RejectRow>> {
    let event_id = event_id(event, occurrence);
    match parsed.0 {
        Ok((time, event_type, detail)) => Ok(EventRow {
            team_id: team.clone(),
            event_id,
            time,
            event_type,
            revision,
            first_seen_at,
            redacted: event.redacted,
            raw: RawText::new(event.text.clone(), event.digest),
            served_digest: None,
            detail,
        }),
        Err(Reject { reason, detail }) => Err(Box::new(RejectRow {
            team_id: team.clone(),
            stream,
            event_id,
            time: event.at(),
            reason: reason.as_str().to_owned(),
            detail,
            first_seen_at,
            redacted: event.redacted,
            raw: event.text.clone(),
            erased: None,
        })),
    }
}

/// An event's time, its type and its stream's own columns.
fn read(stream: Stream, event: &RawEvent) -> Result<(Instant, Text, Detail), Reject> {
    let text = std::str::from_utf8(&event.text).map_err(|error| reject::not_utf8(&error))?;
    let time = match &event.time {
        ServedTime::At(at) => *at,
        ServedTime::Unusable(reject) => return Err(Reject::clone(reject)),
    };
    let is_json = event.is_json || Object::parse(text).is_some();
    let outline = Some(text).filter(|_| is_json).and_then(Outline::of).ok_or_else(reject::not_json)?;
    let object = outline.top();
    let of = |event_type: &str, texts: &[Option<&str>]| {
        let detail = Detail::new(stream, texts).expect("BUG: a stream's texts are as many as its columns");
        (time, event_type.into(), detail)
    };
    Ok(match stream {
        Stream::Activity => {
            let (event_type, texts) = activity::read(object)?;
            of(event_type, &texts)
        }
        Stream::Connections => {
            let (event_type, texts) = connections::read(object, event.device.as_ref())?;
            of(event_type, &texts.each_ref().map(Option::as_deref))
        }
        Stream::Billing => {
            let (event_type, texts) = billing::read(object)?;
            of(event_type, &texts)
        }
    })
}

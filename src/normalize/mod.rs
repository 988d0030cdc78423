//! Converts served events to rows: one event becomes a typed row, or a reject with its reason. Pure. Missing values stay empty;
//! repeated or wrong ones never cause a panic. Unknown types and fields are normal.

mod activity;
mod billing;
mod connections;
mod reject;

use crate::api::json::Object;
use crate::api::outline::Outline;
use crate::model::{Detail, EventId, EventRow, Instant, RawEvent, RejectRow, RowRef, ServedTime, Stream, TeamId};

use reject::Reject;

/// Number of digits of the content hash in the id of an event without an id.
const CONTENT_ID_DIGITS: usize = 32;

/// The archived id of an event: the service's own, else `<32 digits of the content hash>-<occurrence>`.
/// `occurrence` counts equal events of one window from 1.
pub fn event_id(event: &RawEvent, occurrence: u32) -> EventId {
    match &event.id {
        Some(id) => id.clone(),
        None => EventId::new(format!("{}-{occurrence}", &event.digest.to_string()[..CONTENT_ID_DIGITS])),
    }
}

/// The row of an event, or the reject that is kept instead.
///
/// `revision` is 1 for the first content seen under an id. `first_seen_at` is the time of the answer with the event.
///
/// # Errors
/// When the event is not UTF-8, is not an object, has no usable time, or has not exactly one event field.
pub fn normalize(
    team: &TeamId,
    stream: Stream,
    event: &RawEvent,
    occurrence: u32,
    revision: u32,
    first_seen_at: Instant,
) -> Result<EventRow, Box<RejectRow>> {
    let event_id = event_id(event, occurrence);
    let owned = |time, event_type: &str, texts: &[Option<&str>]| EventRow {
        team_id: team.clone(),
        event_id: event_id.clone(),
        time,
        event_type: event_type.into(),
        revision,
        first_seen_at,
        redacted: event.redacted,
        raw: event.text.clone(),
        detail: Detail::new(stream, texts).expect("BUG: a stream's texts are as many as its columns"),
    };
    read(stream, event, owned).map_err(|Reject { reason, detail }| {
        Box::new(RejectRow {
            team_id: team.clone(),
            stream,
            event_id: event_id.clone(),
            time: event.at(),
            reason,
            detail,
            first_seen_at,
            redacted: event.redacted,
            raw: event.text.clone(),
            erased: None,
        })
    })
}

/// Passes the row of an event that is the first with its id and content to `look`; `None` if the event is a reject.
pub fn with_first_row<T>(
    team: &TeamId,
    stream: Stream,
    event: &RawEvent,
    first_seen_at: Instant,
    look: impl FnOnce(RowRef<'_>) -> T,
) -> Option<T> {
    let made;
    let event_id = match &event.id {
        Some(id) => id,
        None => {
            made = event_id(event, 1);
            &made
        }
    };
    let borrowed = |time, event_type: &str, texts: &[Option<&str>]| {
        look(RowRef {
            team_id: team.as_str(),
            event_id: event_id.as_str(),
            time,
            event_type,
            revision: 1,
            first_seen_at,
            redacted: event.redacted,
            raw: &event.text,
            raw_digest: Some(event.digest),
            texts,
        })
    };
    read(stream, event, borrowed).ok()
}

/// Passes an event's time, its type and the texts of its stream's own columns to `make`.
fn read<T>(
    stream: Stream,
    event: &RawEvent,
    make: impl FnOnce(Instant, &str, &[Option<&str>]) -> T,
) -> Result<T, Reject> {
    let text = std::str::from_utf8(&event.text).map_err(|error| reject::not_utf8(&error))?;
    let time = match &event.time {
        ServedTime::At(at) => *at,
        ServedTime::Unusable(why) => return Err(reject::unusable_time(why)),
    };
    let is_json = event.is_json || Object::parse(text).is_some();
    let outline = Some(text).filter(|_| is_json).and_then(Outline::of).ok_or_else(reject::not_json)?;
    let object = outline.top();
    Ok(match stream {
        Stream::Activity => {
            let (event_type, texts) = activity::read(object)?;
            make(time, event_type, &texts)
        }
        Stream::Connections => {
            let (event_type, texts) = connections::read(object, event.device.as_ref())?;
            make(time, event_type, &texts.each_ref().map(Option::as_deref))
        }
        Stream::Billing => {
            let (event_type, texts) = billing::read(object)?;
            make(time, event_type, &texts)
        }
    })
}

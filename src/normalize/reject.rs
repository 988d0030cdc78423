//! The sentences of rejects.

use std::str::Utf8Error;

use crate::model::{Reject, RejectReason};

/// Maximum number of names in a sentence; the event itself is kept.
const NAMES_SHOWN_MAX: usize = 5;
/// Maximum number of characters of a name in a sentence.
const NAME_CHARS_MAX: usize = 60;
/// Stands for a longer name: an erasure would not find a part of a name that is a person's.
const LONG_NAME: &str = "(long name)";

pub(super) fn not_utf8(error: &Utf8Error) -> Reject {
    Reject::new(RejectReason::NotUtf8, format!("the event's text is not UTF-8 at byte {}", error.valid_up_to()))
}

pub(super) fn not_json() -> Reject {
    Reject::new(
        RejectReason::NotJson,
        "the event's text is not JSON: a string in it holds a control character or an unknown escape",
    )
}

pub(super) fn no_event_field() -> Reject {
    Reject::new(RejectReason::NoEventField, "no field names the event's type")
}

pub(super) fn two_event_fields(names: &[&str]) -> Reject {
    let is_long = |name: &str| name.chars().count() > NAME_CHARS_MAX;
    let shown = names.iter().take(NAMES_SHOWN_MAX).map(|name| if is_long(name) { LONG_NAME } else { name });
    let shown: Vec<&str> = shown.collect();
    let more = if names.len() > NAMES_SHOWN_MAX { ", ..." } else { "" };
    let count = names.len();
    Reject::new(
        RejectReason::TwoEventFields,
        format!("{count} fields name the event's type: {}{more}", shown.join(", ")),
    )
}

/// The only name of `names`.
pub(super) fn exactly_one<'a>(names: &[&'a str]) -> Result<&'a str, Reject> {
    match names {
        [] => Err(no_event_field()),
        [name] => Ok(name),
        _ => Err(two_event_fields(names)),
    }
}

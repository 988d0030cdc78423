//! The reasons of rejects: a code for programs, a sentence for people. Neither repeats the event's values.

use std::str::Utf8Error;

/// Maximum number of names in a sentence; the event itself is kept.
const NAMES_SHOWN_MAX: usize = 5;
/// Maximum number of characters of a name in a sentence.
const NAME_CHARS_MAX: usize = 60;
/// Stands for a longer name: an erasure would not find a part of a name that is a person's.
const LONG_NAME: &str = "(long name)";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reject {
    pub reason: String,
    pub detail: String,
}

fn reject(reason: &str, detail: String) -> Reject {
    Reject { reason: reason.to_owned(), detail }
}

pub(super) fn not_utf8(error: &Utf8Error) -> Reject {
    reject("not_utf8", format!("the event's text is not UTF-8 at byte {}", error.valid_up_to()))
}

pub(super) fn not_json() -> Reject {
    reject(
        "not_json",
        "the event's text is not JSON: a string in it holds a control character or an unknown escape".into(),
    )
}

/// `why` comes from the wire parser: a code, a colon, a sentence.
pub(super) fn unusable_time(why: &str) -> Reject {
    let (reason, detail) = why.split_once(": ").unwrap_or(("time_unusable", why));
    reject(reason, detail.to_owned())
}

pub(super) fn no_event_field() -> Reject {
    reject("no_event_field", "no field names the event's type".into())
}

pub(super) fn two_event_fields(names: &[&str]) -> Reject {
    let is_long = |name: &str| name.chars().count() > NAME_CHARS_MAX;
    let shown = names.iter().take(NAMES_SHOWN_MAX).map(|name| if is_long(name) { LONG_NAME } else { name });
    let shown: Vec<&str> = shown.collect();
    let more = if names.len() > NAMES_SHOWN_MAX { ", ..." } else { "" };
    let count = names.len();
    reject("two_event_fields", format!("{count} fields name the event's type: {}{more}", shown.join(", ")))
}

/// The only name of `names`.
pub(super) fn exactly_one<'a>(names: &[&'a str]) -> Result<&'a str, Reject> {
    match names {
        [] => Err(no_event_field()),
        [name] => Ok(name),
        _ => Err(two_event_fields(names)),
    }
}

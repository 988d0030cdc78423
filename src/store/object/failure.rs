//! A store's error in one line without addresses, because they can contain credentials.

use std::io::{self, ErrorKind};

use object_store::Error;

use crate::http_client;

/// The meaning of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The object does not exist.
    Missing,
    /// The store refused, and would refuse again.
    Refused,
    /// The effect is unknown, and a retry is possible.
    Unclear,
}

/// A missing bucket gives the same status as a missing object.
const NO_BUCKET: [&str; 3] = ["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"];
/// The addresses where cloud instances ask for their identity.
const IDENTITY: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];
const TEXT_CHARS_MAX: usize = 300;
const NO_ANSWER: &str = "the store gave no answer: ";

pub(super) fn failure_kind(error: &Error) -> FailureKind {
    let text = error.to_string();
    match error {
        Error::NotFound { .. } if NO_BUCKET.iter().any(|code| text.contains(code)) => FailureKind::Refused,
        Error::NotFound { .. } => FailureKind::Missing,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } | Error::NotImplemented { .. } => {
            FailureKind::Refused
        }
        _ => match status(&text) {
            Some(408 | 409 | 412 | 429 | 500..) | None => FailureKind::Unclear,
            Some(_) => FailureKind::Refused,
        },
    }
}

pub(super) fn io_error(error: &Error) -> io::Error {
    let kind = match error {
        Error::NotFound { .. } => ErrorKind::NotFound,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => ErrorKind::PermissionDenied,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, describe(error))
}

/// Why a client cannot be made. It has sent no request yet.
pub(super) fn setting_error(error: &Error) -> io::Error {
    let said = describe(error);
    io::Error::other(said.strip_prefix(NO_ANSWER).map_or(said.clone(), |why| format!("a setting is invalid: {why}")))
}

/// `the store answered 403 AccessDenied: no right to list`, or why no answer came.
fn describe(error: &Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let (text, innermost) = (error.to_string(), innermost.to_string());
    let (says, status) = (|what: &str| text.contains(what) || innermost.contains(what), status(&text));
    if IDENTITY.iter().any(|address| says(address)) {
        return "no credentials are set, and this machine has no cloud identity: set the credentials of the store"
            .to_owned();
    }
    if says("URL scheme is not allowed") {
        return "the address is plain http: set AWS_ALLOW_HTTP or AZURE_ALLOW_HTTP to true to allow it".to_owned();
    }
    if says("redirect without LOCATION") || matches!(status, Some(301 | 307)) {
        return "the bucket is in another region: set AWS_REGION to the bucket's region".to_owned();
    }
    if says("No CA certificates") {
        return http_client::fault(error);
    }
    let Some(status) = status else { return format!("{NO_ANSWER}{}", plain(&innermost)) };
    let member = |name: &str| between(&text, &format!("<{name}>"), &format!("</{name}>"));
    let code = member("Code").map_or_else(String::new, |code| format!(" {code}"));
    let message = member("Message").map_or_else(String::new, |message| format!(": {}", plain(message)));
    format!("the store answered {status}{code}{message}")
}

fn status(text: &str) -> Option<u16> {
    let rest = text.split_once("status code: ")?.1;
    rest.get(..3)?.parse().ok()
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    text.split_once(open)?.1.split_once(close).map(|(inner, _)| inner)
}

/// One line without XML escapes, not too long, and without the query part of an address.
fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    for (escaped, meant) in [("&apos;", "'"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")] {
        text = text.replace(escaped, meant);
    }
    let words = text.split_whitespace().map(|word| match word.split_once('?') {
        Some((address, _)) if address.contains("://") => address,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ").chars().take(TEXT_CHARS_MAX).collect()
}

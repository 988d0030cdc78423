//! Parameters: their types, their defaults, and values checked before anything is run.

use std::fmt;
use std::str::FromStr;

use duckdb::types::{TimeUnit, Value};
use jiff::tz::TimeZone;
use serde_json::json;

use crate::model::{Instant, When, parse_duration};

use super::Allowed;

/// The types of a header's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    Integer,
    Number,
    Text,
    Boolean,
    /// `30m`; in SQL a BIGINT of seconds.
    Duration,
    /// `2026-11-20`, RFC 3339 or `-30d`; in SQL a TIMESTAMP, UTC.
    Date,
    /// `07:00`, by the clocks of the zone, until `24:00`; in SQL a TIME.
    Time,
    /// `a,b,c`; in SQL the text of a JSON list of strings.
    List,
}

impl ParamKind {
    pub const ALL: [ParamKind; 8] = [
        ParamKind::Integer,
        ParamKind::Number,
        ParamKind::Text,
        ParamKind::Boolean,
        ParamKind::Duration,
        ParamKind::Date,
        ParamKind::Time,
        ParamKind::List,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ParamKind::Integer => "integer",
            ParamKind::Number => "number",
            ParamKind::Text => "text",
            ParamKind::Boolean => "boolean",
            ParamKind::Duration => "duration",
            ParamKind::Date => "date",
            ParamKind::Time => "time",
            ParamKind::List => "list",
        }
    }

    /// The value that `text` says. Days are those of `zone`, ages are counted from `now`.
    ///
    /// # Errors
    /// A sentence that names the text, when it is no value of this type.
    pub fn value(self, text: &str, now: Instant, zone: &TimeZone) -> Result<ParamValue, String> {
        let refused = |expected: &str| format!("{text:?} is not {expected}");
        match self {
            ParamKind::Integer => {
                text.parse().map(ParamValue::Integer).map_err(|_| refused("a whole number of 64 bits, such as 10"))
            }
            ParamKind::Number => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(ParamValue::Number(number)),
                _ => Err(refused("a number such as 2.5")),
            },
            ParamKind::Text if text.contains('\0') => Err(refused("a text: it holds a zero byte")),
            ParamKind::Text => Ok(ParamValue::Text(text.to_owned())),
            ParamKind::Boolean => text.parse().map(ParamValue::Boolean).map_err(|_| refused("true or false")),
            ParamKind::Duration => parse_duration(text).map(|span| ParamValue::Seconds(span.as_secs())),
            ParamKind::Date => When::from_str(text).map(|when| ParamValue::At(when.resolve_in(now, zone))),
            ParamKind::Time => {
                time_of_day(text).map(ParamValue::Time).ok_or_else(|| refused("a time of day such as 07:00"))
            }
            ParamKind::List => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Ok(ParamValue::List(items.map(str::to_owned).collect()))
            }
        }
    }

    /// The value of a text in a header, where there is neither a zone nor a now.
    pub(super) fn plain(self, text: &str) -> Result<ParamValue, String> {
        self.value(text, Instant::EARLIEST, &TimeZone::UTC)
    }
}

/// Microseconds since midnight. A day ends at 24:00.
fn time_of_day(text: &str) -> Option<i64> {
    let is_number = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = text.split(':').map(|part| part.parse::<u8>().ok().filter(|_| is_number(part)));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
    let is_one = parts.next().is_none() && minute < 60 && second < 60 && seconds <= 86_400;
    is_one.then_some(seconds * 1_000_000)
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ParamKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        ParamKind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            format!("unknown type {text:?}: expected one of {}", ParamKind::ALL.map(ParamKind::as_str).join(", "))
        })
    }
}

/// What a parameter is when nobody gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamDefault {
    /// It must be given.
    Required,
    Null,
    /// As one would type it.
    Text(String),
}

/// A parameter as a header declares it: `burst_count integer from 1 to 1000 = 10 | failures that make a burst`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    pub kind: ParamKind,
    pub allowed: Allowed,
    pub default: ParamDefault,
    pub about: String,
}

impl FromStr for Param {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (declared, about) = text.split_once('|').unwrap_or((text, ""));
        let (typed, default) = match declared.split_once('=') {
            Some((typed, default)) => (typed, Some(default.trim())),
            None => (declared, None),
        };
        let mut words = typed.split_whitespace();
        let (Some(name), Some(kind)) = (words.next(), words.next()) else {
            return Err(format!("{:?} is not NAME TYPE = DEFAULT | what it means", text.trim()));
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_name {
            return Err(format!("{name:?} is not a parameter's name: lower-case letters, digits and _"));
        }
        let kind: ParamKind = kind.parse()?;
        let allowed = Allowed::parse(kind, words).map_err(|message| format!("parameter {name}: {message}"))?;
        let default = match default {
            None => ParamDefault::Required,
            Some("null") => ParamDefault::Null,
            Some(text) => ParamDefault::Text(unquoted(text).to_owned()),
        };
        if let ParamDefault::Text(text) = &default {
            allowed.check(kind, text, &kind.plain(text)?)?;
        }
        Ok(Self { name: name.to_owned(), kind, allowed, default, about: about.trim().to_owned() })
    }
}

impl Param {
    /// The value that `text` says. Days are those of `zone`, ages are counted from `now`.
    ///
    /// # Errors
    /// A sentence that names the text, when it is no value that this parameter may have.
    pub fn value(&self, text: &str, now: Instant, zone: &TimeZone) -> Result<ParamValue, String> {
        let value = self.kind.value(text, now, zone)?;
        self.allowed.check(self.kind, text, &value)?;
        Ok(value)
    }

    /// What to do where it is required and not there.
    pub(super) fn missing(&self) -> String {
        let about = if self.about.is_empty() { String::new() } else { format!(" ({})", self.about) };
        format!("parameter {} must be given: --param {0}={1}{about}", self.name, self.kind)
    }

    /// Its type and what it takes of it: `integer from 1 to 100`.
    pub fn taken(&self) -> String {
        let (kind, allowed) = (self.kind, self.allowed.to_string());
        match (&self.allowed, kind) {
            (Allowed::Any, _) => kind.to_string(),
            (Allowed::Choice(_) | Allowed::Days, ParamKind::List) => format!("list, each {allowed}"),
            _ => format!("{kind}, {allowed}"),
        }
    }
}

/// A default may stand in quotes, so that it can be empty or hold a `|`-less edge of spaces.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(text)
}

/// A value that is bound.
#[derive(Debug, Clone, PartialEq)]
pub enum ParamValue {
    Null,
    Integer(i64),
    Number(f64),
    Text(String),
    Boolean(bool),
    Seconds(u64),
    At(Instant),
    /// Microseconds since midnight.
    Time(i64),
    List(Vec<String>),
}

impl ParamValue {
    /// As the engine takes it: never a part of the query's text.
    pub(in crate::report) fn bound(&self) -> Value {
        match self {
            ParamValue::Null => Value::Null,
            ParamValue::Integer(number) => Value::BigInt(*number),
            ParamValue::Number(number) => Value::Double(*number),
            ParamValue::Text(text) => Value::Text(text.clone()),
            ParamValue::Boolean(flag) => Value::Boolean(*flag),
            ParamValue::Seconds(seconds) => Value::BigInt(i64::try_from(*seconds).unwrap_or(i64::MAX)),
            ParamValue::At(at) => Value::Timestamp(TimeUnit::Microsecond, at.micros()),
            ParamValue::Time(micros) => Value::Time64(TimeUnit::Microsecond, *micros),
            ParamValue::List(items) => Value::Text(json!(items).to_string()),
        }
    }

    /// As the statement about a report shows it: durations in seconds, times in RFC 3339, those of a day as `07:00`.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            ParamValue::Null => json!(null),
            ParamValue::Integer(number) => json!(number),
            ParamValue::Number(number) => json!(number),
            ParamValue::Text(text) => json!(text),
            ParamValue::Boolean(flag) => json!(flag),
            ParamValue::Seconds(seconds) => json!(seconds),
            ParamValue::At(at) => json!(at),
            ParamValue::Time(micros) => json!(clock(*micros)),
            ParamValue::List(items) => json!(items),
        }
    }
}

fn clock(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let end = if second == 0 { String::new() } else { format!(":{second:02}") };
    format!("{hour:02}:{minute:02}{end}")
}

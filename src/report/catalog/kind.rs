//! The types of parameters, and the parser of their values.

use std::str::FromStr;

use jiff::tz::TimeZone;
use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use crate::model::{Instant, When, parse_duration};

use super::ParamValue;

/// The types of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str, parse_err_ty = String, parse_err_fn = unknown)]
pub enum ParamKind {
    Integer,
    Number,
    Text,
    Boolean,
    /// `30m`; in SQL a BIGINT of seconds.
    Duration,
    /// `2026-11-20`, RFC 3339 or `-30d`; in SQL a TIMESTAMP, UTC.
    Date,
    /// `07:00` to `24:00` in the time zone; in SQL a TIME.
    Time,
    /// `a,b,c`; in SQL the text of a JSON list of strings.
    List,
}

impl ParamKind {
    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }

    /// Parses a value. Days belong to `zone`; ages are relative to `now`.
    ///
    /// # Errors
    /// A sentence that names the invalid text.
    pub fn value(self, text: &str, now: Instant, zone: &TimeZone) -> Result<ParamValue, String> {
        let refused = |expected: &str| format!("{text:?} is not {expected}");
        match self {
            ParamKind::Integer => {
                text.parse().map(ParamValue::Integer).map_err(|_| refused("a whole number, such as 10"))
            }
            ParamKind::Number => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(ParamValue::Number(number)),
                _ => Err(refused("a number such as 2.5")),
            },
            ParamKind::Text if text.contains('\0') => Err(refused("a text, because it contains a zero byte")),
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

    /// Parses a value of a header, which has neither a zone nor a current time.
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

fn unknown(text: &str) -> String {
    format!("unknown type {text:?}: expected one of {}", ParamKind::VARIANTS.join(", "))
}

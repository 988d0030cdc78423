//! Parameters that a report declares, their defaults, and the checks of their values before a query runs.

use std::str::FromStr;

use jiff::tz::TimeZone;

use crate::model::Instant;

use super::{AllowedValues, ParamKind, ParamValue};

/// Parameters that every report's SQL can use. The period and the other arguments give their values.
pub const IMPLICIT_PARAMS: [&str; 6] = ["from", "to", "team", "tz", "now", "as_of"];

/// The default of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamDefault {
    /// The user must give a value.
    Required,
    Null,
    /// The default, as typed.
    Text(String),
}

/// A declared parameter: `burst_count integer from 1 to 1000 = 10 | failures that make a burst`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    pub kind: ParamKind,
    pub allowed: AllowedValues,
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
            return Err(format!("{:?} is not of the form NAME TYPE = DEFAULT | MEANING", text.trim()));
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_name {
            return Err(format!("{name:?} is not a parameter name: use lower-case letters, digits and _"));
        }
        let kind: ParamKind = kind.parse()?;
        let allowed = AllowedValues::parse(kind, words).map_err(|message| format!("parameter {name}: {message}"))?;
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
    /// Parses a value. Days belong to `zone`; ages are relative to `now`.
    ///
    /// # Errors
    /// A sentence that names the invalid text.
    pub fn value(&self, text: &str, now: Instant, zone: &TimeZone) -> Result<ParamValue, String> {
        let value = self.kind.value(text, now, zone)?;
        self.allowed.check(self.kind, text, &value)?;
        Ok(value)
    }

    /// The advice for a missing required parameter.
    pub(super) fn missing(&self) -> String {
        let about = if self.about.is_empty() { String::new() } else { format!(" ({})", self.about) };
        format!("parameter {} is missing: give --param {0}={1}{about}", self.name, self.kind)
    }

    /// The type and the allowed values: `integer from 1 to 100`.
    pub fn accepted(&self) -> String {
        let (kind, allowed) = (self.kind, self.allowed.to_string());
        match (&self.allowed, kind) {
            (AllowedValues::Any, _) => kind.to_string(),
            (AllowedValues::Choice(_) | AllowedValues::Days, ParamKind::List) => format!("list, each {allowed}"),
            _ => format!("{kind}, {allowed}"),
        }
    }
}

/// A default can stand in quotes, so that it can be empty or begin with a space.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(text)
}

//! Retention classes such as `7y`, one per dataset, and the arithmetic of their dates.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::{Span, Timestamp, tz::TimeZone};
use serde::Deserialize;
use strum::IntoStaticStr;

use super::{Instant, TeamId};

/// The maximum length of a class in years. A longer class is probably a wrong unit.
const YEARS_MAX: i64 = 100;

/// The datasets with a class. Sessions follow connections; all parts of the inventory share one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Retained {
    Activity,
    Connections,
    Billing,
    Inventory,
    Quarantine,
}

impl Retained {
    pub const ALL: [Retained; 5] =
        [Retained::Activity, Retained::Connections, Retained::Billing, Retained::Inventory, Retained::Quarantine];

    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }
}

impl fmt::Display for Retained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Retained {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Retained::ALL.into_iter().find(|retained| retained.as_str() == text);
        let known = || Retained::ALL.map(Retained::as_str).join(", ");
        found.ok_or_else(|| format!("{text:?} is not a dataset with a retention class: expected one of {}", known()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Day,
    Week,
    Month,
    Year,
}

/// A retention time: a whole number of days, weeks, calendar months or years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionClass {
    count: i64,
    unit: Unit,
}

impl RetentionClass {
    /// `end` plus the class. If the target month lacks the day, the month's last day counts.
    pub fn after(self, end: Instant) -> Instant {
        let span = match self.unit {
            Unit::Day => Span::new().days(self.count),
            Unit::Week => Span::new().days(self.count * 7),
            Unit::Month => Span::new().months(self.count),
            Unit::Year => Span::new().years(self.count),
        };
        let stamp =
            Timestamp::from_nanosecond(i128::from(end.nanos())).expect("BUG: 64 bits of nanoseconds fit a timestamp");
        let later = stamp.to_zoned(TimeZone::UTC).checked_add(span).map(|later| later.timestamp().as_nanosecond());
        Instant::from_nanos(later.ok().and_then(|nanos| i64::try_from(nanos).ok()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for RetentionClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Day => "d",
            Unit::Week => "w",
            Unit::Month => "mo",
            Unit::Year => "y",
        };
        write!(f, "{}{unit}", self.count)
    }
}

impl FromStr for RetentionClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("{text:?} is not a retention time: give a number and d, w, mo or y, such as 90d, 18mo or 7y");
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (unit, most) = match &text[digits..] {
            "d" => (Unit::Day, YEARS_MAX * 366),
            "w" => (Unit::Week, YEARS_MAX * 53),
            "mo" => (Unit::Month, YEARS_MAX * 12),
            "y" => (Unit::Year, YEARS_MAX),
            _ => return Err(refused()),
        };
        // A class has one spelling, so equal policies have equal texts.
        let is_plain = !text.starts_with('0');
        let count: i64 = text[..digits].parse().ok().filter(|_| is_plain).ok_or_else(refused)?;
        if (1..=most).contains(&count) { Ok(Self { count, unit }) } else { Err(refused()) }
    }
}

/// The class of one dataset, in the ledger's form: `connections = 7y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    pub retained: Retained,
    pub class: RetentionClass,
}

impl fmt::Display for RetentionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.retained, self.class)
    }
}

impl FromStr for RetentionPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (retained, class) =
            text.split_once(" = ").ok_or_else(|| format!("{text:?} is not a policy such as \"connections = 7y\""))?;
        Ok(Self { retained: retained.parse()?, class: class.parse()? })
    }
}

/// The classes of a team. A dataset without a class never expires.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retention(pub BTreeMap<Retained, RetentionClass>);

impl Retention {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn policy(&self, retained: Retained) -> Option<RetentionPolicy> {
        self.0.get(&retained).map(|class| RetentionPolicy { retained, class: *class })
    }
}

/// The classes of all teams. Without classes, no row ever expires.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TeamRetention {
    pub all: Retention,
    /// Teams with their own classes.
    pub teams: BTreeMap<TeamId, Retention>,
}

impl TeamRetention {
    /// The classes of a team.
    pub fn of(&self, team: &TeamId) -> &Retention {
        self.teams.get(team).unwrap_or(&self.all)
    }

    /// Whether no team has a class.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.teams.values().all(Retention::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(text: &str) -> RetentionClass {
        text.parse().unwrap()
    }

    #[test]
    fn each_retention_class_has_one_spelling() {
        for text in ["1d", "90d", "4w", "18mo", "7y", "100y"] {
            assert_eq!(class(text).to_string(), text);
        }
        for text in
            ["", "7", "y", "0d", "07y", "-1y", "7 y", "7 parsecs", "1m", "1.5y", "101y", "99999999999999999999d", "7ÿ"]
        {
            let message = text.parse::<RetentionClass>().unwrap_err();
            assert!(message.contains("7y") && message.starts_with(&format!("{text:?}")), "{text}: {message}");
        }
        assert_eq!("connections = 7y".parse::<RetentionPolicy>().unwrap().to_string(), "connections = 7y");
        for text in ["connections=7y", "sessions = 7y", "connections = 7 parsecs", ""] {
            assert!(text.parse::<RetentionPolicy>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_class_counts_days_or_the_calendar() {
        for (text, end, expected) in [
            ("30d", "2026-03-01T00:00:00Z", "2026-03-31T00:00:00Z"),
            ("2w", "2026-03-01T00:00:00Z", "2026-03-15T00:00:00Z"),
            ("1mo", "2026-01-31T05:00:00Z", "2026-02-28T05:00:00Z"),
            ("12mo", "2024-02-29T00:00:00Z", "2025-02-28T00:00:00Z"),
            ("7y", "2026-03-01T00:00:00Z", "2033-03-01T00:00:00Z"),
            ("1y", "2024-02-29T00:00:00.5Z", "2025-02-28T00:00:00.5Z"),
        ] {
            assert_eq!(class(text).after(end.parse().unwrap()), expected.parse().unwrap(), "{text} after {end}");
        }
        assert_eq!(class("100y").after(Instant::from_nanos(i64::MAX)), Instant::from_nanos(i64::MAX));
    }
}

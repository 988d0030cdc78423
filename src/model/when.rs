//! Dates on the command line.

use std::str::FromStr;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{Instant, Range, parse_duration};

/// A moment as a person types it: RFC 3339, a day (`2026-11-20`, meaning its first moment), or an age (`-30d`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    At(Instant),
    Day(Date),
    Ago(Duration),
}

impl When {
    /// The moment, with days in UTC.
    pub fn resolve(self, now: Instant) -> Instant {
        self.resolve_in(now, &TimeZone::UTC)
    }

    /// The moment, with days in `zone`. A day begins at its first moment, even if summer time skips or repeats
    /// midnight.
    pub fn resolve_in(self, now: Instant, zone: &TimeZone) -> Instant {
        match self {
            When::At(at) => at,
            When::Ago(age) => now.minus(age),
            When::Day(day) => {
                let first = day.to_zoned(zone.clone()).and_then(|midnight| midnight.start_of_day());
                let nanos = first.map(|first| first.timestamp().as_nanosecond());
                let nanos = nanos.expect("BUG: a day of 2000 to 2099 begins in every zone");
                Instant::from_nanos(i64::try_from(nanos).expect("BUG: 64 bits hold the years 2000 to 2099"))
            }
        }
    }
}

/// The length of a period without a start.
const PERIOD_DEFAULT: Duration = Duration::from_secs(30 * 86_400);

/// The half-open period from `from` to `to`, with days in `zone`; the last 30 days by default.
pub fn period(from: Option<When>, to: Option<When>, now: Instant, zone: &TimeZone) -> Result<Range, String> {
    let end = to.map_or(now, |to| to.resolve_in(now, zone));
    let start = from.map_or_else(|| end.minus(PERIOD_DEFAULT), |from| from.resolve_in(now, zone));
    Range { start, end }.filled()
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused =
            || format!("{text:?} is not a date: give 2026-11-20, 2026-11-20T08:00:00Z, or -30d for 30 days ago");
        if let Some(age) = text.strip_prefix('-') {
            return parse_duration(age).map(When::Ago).map_err(|_| refused());
        }
        let outside = || format!("{text:?} is outside the years 2000 to 2099");
        if text.len() == "2026-11-20".len() {
            let day: Date = text.parse().map_err(|_| refused())?;
            return if (2000..2100).contains(&day.year()) { Ok(When::Day(day)) } else { Err(outside()) };
        }
        let at: Instant = text.parse().map_err(|_| refused())?;
        if (Instant::EARLIEST..Instant::LATEST).contains(&at) { Ok(When::At(at)) } else { Err(outside()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_forms_of_a_date_resolve() {
        let now: Instant = "2026-11-20T08:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-11-19", "2026-11-19T00:00:00Z"),
            ("2026-11-19T10:00:00Z", "2026-11-19T10:00:00Z"),
            ("2026-11-19T10:00:00.5+02:00", "2026-11-19T08:00:00.5Z"),
            ("-30d", "2026-10-21T08:00:00Z"),
            ("-1h30m", "2026-11-20T06:30:00Z"),
        ] {
            assert_eq!(text.parse::<When>().unwrap().resolve(now), expected.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn other_dates_are_refused_with_the_valid_forms() {
        for text in ["", "-", "30d", "2026-13-01", "2026-02-30", "yesterday", "-30", "2026/11/20", "20.11.2026"] {
            let message = text.parse::<When>().unwrap_err();
            assert!(message.contains("-30d") && message.contains("2026-11-20"), "{text}: {message}");
        }
        assert!("1999-12-31".parse::<When>().is_err() && "2100-01-01".parse::<When>().is_err());
    }

    #[test]
    fn a_day_begins_correctly_in_a_zone_that_skips_midnight() {
        for (day, zone, expected) in [
            ("2026-03-29", "Europe/Berlin", "2026-03-28T23:00:00Z"),
            ("2026-03-30", "Europe/Berlin", "2026-03-29T22:00:00Z"),
            ("2026-10-25", "Europe/Berlin", "2026-10-24T22:00:00Z"),
            ("2026-10-26", "Europe/Berlin", "2026-10-25T23:00:00Z"),
            ("2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
            ("2026-11-20", "Asia/Kathmandu", "2026-11-19T18:15:00Z"),
        ] {
            let zone = TimeZone::get(zone).unwrap();
            let resolved = day.parse::<When>().unwrap().resolve_in(Instant::EARLIEST, &zone);
            assert_eq!(resolved, expected.parse().unwrap(), "{day}");
        }
    }
}

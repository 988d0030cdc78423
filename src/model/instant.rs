//! One time type for three units: nanoseconds since the Unix epoch, in 64 bits.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

pub const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The units of event times in the service's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    Seconds,
    Millis,
    Nanos,
}

impl TimeUnit {
    const fn nanos(self) -> i64 {
        match self {
            TimeUnit::Seconds => NANOS_PER_SECOND,
            TimeUnit::Millis => 1_000_000,
            TimeUnit::Nanos => 1,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimeError {
    #[error("time {value} in {unit:?} is outside 2000 to 2100: a wrong unit, or not a time")]
    OutOfRange { value: i64, unit: TimeUnit },
}

/// A moment in UTC, to the nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Instant(i64);

impl Instant {
    /// 2000-01-01T00:00:00Z: earlier event times are invalid.
    pub const EARLIEST: Instant = Instant(946_684_800 * NANOS_PER_SECOND);
    /// 2100-01-01T00:00:00Z: event times from here on are invalid.
    pub const LATEST: Instant = Instant(4_102_444_800 * NANOS_PER_SECOND);

    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds after the epoch. Outside the range, the nearest possible moment.
    pub const fn from_micros(micros: i64) -> Self {
        Self::from_nanos(micros.saturating_mul(1_000))
    }

    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(NANOS_PER_SECOND))
    }

    /// Checked conversion of a served event time.
    ///
    /// # Errors
    /// When the value is outside 2000 to 2100 in that unit.
    pub fn from_unit(value: i64, unit: TimeUnit) -> Result<Self, TimeError> {
        let out = TimeError::OutOfRange { value, unit };
        let nanos = value.checked_mul(unit.nanos()).ok_or(out.clone())?;
        let instant = Self(nanos);
        if (Self::EARLIEST..Self::LATEST).contains(&instant) { Ok(instant) } else { Err(out) }
    }

    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Microseconds since the epoch, rounded down: `event_time` in files.
    pub const fn micros(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Seconds since the epoch, rounded down.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(NANOS_PER_SECOND)
    }

    /// The start of this moment's second.
    pub const fn floor_second(self) -> Self {
        Self::from_seconds(self.seconds())
    }

    /// The start of the grid cell of `length` that contains this moment; the grid starts at the epoch.
    pub fn floor_to(self, length: Duration) -> Self {
        let cell = i64::try_from(length.as_nanos()).expect("BUG: a window is shorter than 292 years");
        Self(self.0.div_euclid(cell) * cell)
    }

    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }

    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// `2026-11-20`, the UTC day.
    pub fn day(self) -> String {
        self.timestamp().strftime("%Y-%m-%d").to_string()
    }

    /// The start of this moment's UTC month.
    pub fn first_of_month(self) -> Self {
        let days = i64::from(Offset::UTC.to_datetime(self.timestamp()).day()) - 1;
        Self::from_seconds((self.seconds().div_euclid(86_400) - days) * 86_400)
    }

    /// The start of this moment's UTC year.
    pub fn first_of_year(self) -> Self {
        let days = i64::from(Offset::UTC.to_datetime(self.timestamp()).day_of_year()) - 1;
        Self::from_seconds((self.seconds().div_euclid(86_400) - days) * 86_400)
    }

    /// `2026-11`, the UTC month.
    pub fn month(self) -> String {
        self.timestamp().strftime("%Y-%m").to_string()
    }

    fn timestamp(self) -> Timestamp {
        Timestamp::from_nanosecond(i128::from(self.0)).expect("BUG: 64 bits of nanoseconds fit a timestamp")
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Instant {
    type Err = String;

    /// RFC 3339, for example `2026-11-20T08:00:00Z`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let stamp: Timestamp = text.parse().map_err(|e| format!("{text:?} is not an RFC 3339 time: {e}"))?;
        let nanos = i64::try_from(stamp.as_nanosecond()).map_err(|_| format!("{text:?} is out of range"))?;
        Ok(Self(nanos))
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_in_all_units_are_equal() {
        let at = Instant::from_unit(1_700_000_000, TimeUnit::Seconds).unwrap();
        assert_eq!(at, Instant::from_unit(1_700_000_000_000, TimeUnit::Millis).unwrap());
        assert_eq!(at, Instant::from_unit(1_700_000_000_000_000_000, TimeUnit::Nanos).unwrap());
    }

    #[test]
    fn a_wrong_unit_lies_outside_the_range() {
        for (value, unit) in [
            (1_700_000_000, TimeUnit::Millis),
            (1_700_000_000_000, TimeUnit::Seconds),
            (1_700_000_000_000, TimeUnit::Nanos),
            (1_700_000_000_000_000_000, TimeUnit::Millis),
            (-1, TimeUnit::Seconds),
            (0, TimeUnit::Nanos),
            (i64::MAX, TimeUnit::Nanos),
            (4_102_444_800, TimeUnit::Seconds),
            (946_684_799, TimeUnit::Seconds),
        ] {
            assert!(Instant::from_unit(value, unit).is_err(), "{value} {unit:?}");
        }
        assert!(Instant::from_unit(946_684_800, TimeUnit::Seconds).is_ok());
        assert!(Instant::from_unit(4_102_444_799, TimeUnit::Seconds).is_ok());
    }
}

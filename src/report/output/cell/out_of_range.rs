//! Dates and times of the SQL engine that Arrow's formatter cannot print: `24:00:00`, infinities, years outside its range, and
//! moments with a time zone.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};

const DAY_SECONDS: i64 = 86_400;
/// The formatter supports the years from -262143 to 262142.
const DAYS_MIN: i64 = -95_000_000;
const DAYS_MAX: i64 = 95_000_000;

/// The text of such a value; `None` for every other value.
pub fn text(array: &dyn Array, row: usize) -> Option<String> {
    match array.data_type() {
        DataType::Time64(TimeUnit::Microsecond) => {
            end_of_day(array.as_primitive::<Time64MicrosecondType>().value(row), 1_000_000)
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            end_of_day(array.as_primitive::<Time64NanosecondType>().value(row), 1_000_000_000)
        }
        DataType::Date32 => {
            let days = i64::from(array.as_primitive::<Date32Type>().value(row));
            infinity(days, i64::from(i32::MAX)).or_else(|| is_far(days).then(|| day(days)))
        }
        DataType::Timestamp(unit, zone) => {
            let (value, per_second) = instant(array, *unit, row);
            let days = value.div_euclid(per_second).div_euclid(DAY_SECONDS);
            // The formatter supports no named zone. The engine has no other zone than UTC.
            let is_ours = zone.is_some() || is_far(days);
            let zone = if zone.is_some() { "Z" } else { "" };
            infinity(value, i64::MAX).or_else(|| is_ours.then(|| format!("{}{zone}", moment(value, per_second))))
        }
        _ => None,
    }
}

/// The value, and the number of its units in a second.
fn instant(array: &dyn Array, unit: TimeUnit, row: usize) -> (i64, i64) {
    match unit {
        TimeUnit::Second => (array.as_primitive::<TimestampSecondType>().value(row), 1),
        TimeUnit::Millisecond => (array.as_primitive::<TimestampMillisecondType>().value(row), 1_000),
        TimeUnit::Microsecond => (array.as_primitive::<TimestampMicrosecondType>().value(row), 1_000_000),
        TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().value(row), 1_000_000_000),
    }
}

fn end_of_day(value: i64, per_second: i64) -> Option<String> {
    (value == DAY_SECONDS * per_second).then(|| "24:00:00".to_owned())
}

fn infinity(value: i64, largest: i64) -> Option<String> {
    match value {
        value if value == largest => Some("infinity".to_owned()),
        value if value == -largest => Some("-infinity".to_owned()),
        _ => None,
    }
}

fn is_far(days: i64) -> bool {
    !(DAYS_MIN..=DAYS_MAX).contains(&days)
}

/// `2026-11-20T08:00:00.123456`, with zero, three, six or nine decimal digits.
fn moment(value: i64, per_second: i64) -> String {
    let (seconds, part) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let (days, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let nanos = part * (1_000_000_000 / per_second);
    let part = match nanos {
        0 => String::new(),
        _ if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        _ if nanos % 1_000 == 0 => format!(".{:06}", nanos / 1_000),
        _ => format!(".{nanos:09}"),
    };
    format!("{}T{:02}:{:02}:{:02}{part}", day(days), second / 3_600, second / 60 % 60, second % 60)
}

/// Days since 1970-01-01 as a Gregorian date; a year of five or more digits has a sign.
fn day(days: i64) -> String {
    const ERA_DAYS: i64 = 146_097;
    // The era's years begin in March, so that the leap day is the last day of a year.
    let (era, of_era) = ((days + 719_468).div_euclid(ERA_DAYS), (days + 719_468).rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let sign = if year > 9_999 { "+" } else { "" };
    format!("{sign}{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_equal_the_calendar() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_777, "2026-11-20"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+10000-01-01"),
            (108_853_222, "+300000-01-01"),
        ] {
            assert_eq!(day(days), expected, "{days}");
        }
    }
}

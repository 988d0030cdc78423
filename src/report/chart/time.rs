//! Time axes: the positions of ticks, and the text of moments. Times are microseconds of the report's local time, so no
//! zone is needed here.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const SECOND: f64 = 1e6;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 60.0 * MINUTE;
pub const DAY: f64 = 24.0 * HOUR;

/// Distances between ticks below a month, ascending.
const STEPS: [f64; 16] = [
    SECOND,
    5.0 * SECOND,
    15.0 * SECOND,
    30.0 * SECOND,
    MINUTE,
    5.0 * MINUTE,
    15.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
    7.0 * DAY,
    14.0 * DAY,
];
/// Months between ticks, ascending.
const MONTHS: [i32; 12] = [1, 2, 3, 6, 12, 24, 60, 120, 240, 1_200, 6_000, 12_000];
/// The maximum number of ticks, whatever is asked for.
const TICKS_MAX: usize = 40;
/// The epoch was a Thursday: weeks on an axis begin on Mondays.
const MONDAY: f64 = 4.0 * DAY;

/// A tick: its position and its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    pub at: f64,
    pub label: String,
}

/// At most `wanted` ticks from `first` to `last`, at round moments.
pub fn ticks(first: f64, last: f64, wanted: usize) -> Vec<Tick> {
    #[expect(clippy::cast_precision_loss, reason = "a few ticks")]
    let room = (last - first).max(SECOND) / wanted.max(1) as f64;
    match STEPS.iter().find(|step| **step >= room) {
        Some(step) => stepped(first, last, *step),
        None => monthly(first, last, room),
    }
}

fn stepped(first: f64, last: f64, step: f64) -> Vec<Tick> {
    let origin = if step >= 7.0 * DAY { MONDAY } else { 0.0 };
    let mut at = ((first - origin) / step).ceil() * step + origin;
    let mut ticks = Vec::new();
    while at <= last && ticks.len() < TICKS_MAX {
        let label = match civil(at) {
            None => String::new(),
            Some(time) if step >= DAY => day_label(time.date(), ticks.is_empty()),
            // At midnight, show the date.
            Some(time) if at % DAY == 0.0 || ticks.is_empty() && step >= 6.0 * HOUR => day_label(time.date(), false),
            Some(time) if step >= MINUTE => time.strftime("%H:%M").to_string(),
            Some(time) => time.strftime("%H:%M:%S").to_string(),
        };
        ticks.push(Tick { at, label });
        at += step;
    }
    ticks
}

fn monthly(first: f64, last: f64, room: f64) -> Vec<Tick> {
    let step = MONTHS.into_iter().find(|months| f64::from(*months) * 30.4 * DAY >= room).unwrap_or(12_000);
    let Some(start) = civil(first) else { return Vec::new() };
    let months = i32::from(start.year()) * 12 + i32::from(start.month()) - 1;
    let mut month = months - months.rem_euclid(step);
    let mut ticks = Vec::new();
    while let Some(at) = month_start(month).filter(|at| *at <= last && ticks.len() < TICKS_MAX) {
        if at >= first {
            let is_year = month.rem_euclid(12) == 0;
            let label = match civil(at) {
                Some(time) if step >= 12 => time.strftime("%Y").to_string(),
                Some(time) if is_year || ticks.is_empty() => time.strftime("%b %Y").to_string(),
                Some(time) => time.strftime("%b").to_string(),
                None => String::new(),
            };
            ticks.push(Tick { at, label });
        }
        month += step;
    }
    ticks
}

fn month_start(month: i32) -> Option<f64> {
    let year = i16::try_from(month.div_euclid(12)).ok()?;
    let month = i8::try_from(month.rem_euclid(12) + 1).ok()?;
    micros(Date::new(year, month, 1).ok()?.to_datetime(jiff::civil::Time::midnight()))
}

fn day_label(day: Date, with_year: bool) -> String {
    if with_year || (day.month() == 1 && day.day() == 1) {
        day.strftime("%-d %b %Y").to_string()
    } else {
        day.strftime("%-d %b").to_string()
    }
}

/// `2026-11-20 08:00`, with seconds if they are not zero; only the date at midnight.
pub fn moment(at: f64) -> String {
    let Some(time) = civil(at) else { return "out of range".to_owned() };
    if at % DAY == 0.0 {
        time.strftime("%Y-%m-%d").to_string()
    } else if at % MINUTE == 0.0 {
        time.strftime("%Y-%m-%d %H:%M").to_string()
    } else {
        time.strftime("%Y-%m-%d %H:%M:%S").to_string()
    }
}

/// A span without a repeated date: `2026-11-20 08:00 to 10:00`.
pub fn span(from: f64, to: f64) -> String {
    let same_day = (from / DAY).floor() == (to / DAY).floor();
    match civil(to).filter(|_| same_day && from % DAY != 0.0) {
        Some(end) => {
            let end = end.strftime("%H:%M:%S").to_string();
            format!("{} to {}", moment(from), end.strip_suffix(":00").unwrap_or(&end))
        }
        None => format!("{} to {}", moment(from), moment(to)),
    }
}

/// Monday is 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 6")]
pub fn weekday(at: f64) -> usize {
    ((at - MONDAY) / DAY).floor().rem_euclid(7.0) as usize
}

#[expect(clippy::cast_possible_truncation, reason = "an out-of-range time saturates, and is refused by the library")]
fn civil(at: f64) -> Option<DateTime> {
    let stamp = Timestamp::from_microsecond(at as i64).ok()?;
    Some(TimeZone::UTC.to_datetime(stamp))
}

fn micros(time: DateTime) -> Option<f64> {
    let stamp = TimeZone::UTC.to_timestamp(time).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "a drawing is not finer than that")]
    Some(stamp.as_microsecond() as f64)
}

/// A duration for people: `350 ms`, `12 s`, `5 min`, `1 h 30 min`, `3 d`.
#[expect(clippy::cast_possible_truncation, reason = "a float saturates")]
pub fn duration(millis: f64) -> String {
    if millis < 0.0 {
        return format!("-{}", duration(-millis));
    }
    if millis < 1_000.0 {
        return format!("{} ms", super::number::number(millis));
    }
    let span = SignedDuration::from_millis(millis as i64);
    let (days, hours, minutes, seconds) =
        (span.as_hours() / 24, span.as_hours() % 24, span.as_mins() % 60, span.as_secs() % 60);
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{} {unit}", super::number::number(large as f64)),
        small => format!("{} {unit} {small} {small_unit}", super::number::number(large as f64)),
    };
    match (days, hours, minutes) {
        (1.., ..) => two(days, "d", hours, "h"),
        (_, 1.., _) => two(hours, "h", minutes, "min"),
        (_, _, 1..) => two(minutes, "min", seconds, "s"),
        _ => format!("{seconds} s"),
    }
}

/// The start of the month of `at`.
pub fn month_floor(at: f64) -> f64 {
    let month = civil(at).map(|time| i32::from(time.year()) * 12 + i32::from(time.month()) - 1);
    month.and_then(month_start).unwrap_or(at)
}

/// `November 2026`
pub fn month_name(at: f64) -> String {
    civil(at).map_or_else(String::new, |time| time.strftime("%B %Y").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> f64 {
        micros(text.parse().unwrap()).unwrap()
    }

    fn labels(first: &str, last: &str) -> Vec<String> {
        ticks(at(first), at(last), 7).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_fall_on_round_moments() {
        for (first, last, expected) in [
            ("2026-11-20T08:10", "2026-11-20T09:10", vec!["08:15", "08:30", "08:45", "09:00"]),
            ("2026-11-20T20:00", "2026-11-21T14:00", vec!["21:00", "21 Nov", "03:00", "06:00", "09:00", "12:00"]),
            ("2026-11-01T00:00", "2026-12-01T00:00", vec!["2 Nov 2026", "9 Nov", "16 Nov", "23 Nov", "30 Nov"]),
            ("2026-10-15T00:00", "2027-03-02T00:00", vec!["Nov 2026", "Dec", "Jan 2027", "Feb", "Mar"]),
            ("2019-01-01T00:00", "2026-12-01T00:00", vec!["2020", "2022", "2024", "2026"]),
        ] {
            assert_eq!(labels(first, last), expected, "{first} to {last}");
        }
        for far in [f64::MAX, -1e300] {
            assert!(ticks(far, far, 5).len() <= TICKS_MAX);
        }
    }

    #[test]
    fn moments_and_lengths_are_short() {
        assert_eq!(moment(at("2026-11-20T00:00")), "2026-11-20");
        assert_eq!(moment(at("2026-11-20T08:00:07.5")), "2026-11-20 08:00:07");
        assert_eq!(span(at("2026-11-20T08:00"), at("2026-11-20T10:00")), "2026-11-20 08:00 to 10:00");
        assert_eq!(moment(1e300), "out of range");
        assert_eq!(weekday(at("2026-11-20T23:00")), 4);
        assert_eq!(month_name(month_floor(at("2026-11-20T23:00"))), "November 2026");
        for (millis, text) in [
            (0.0, "0 ms"),
            (999.0, "999 ms"),
            (61_000.0, "1 min 1 s"),
            (5.4e6, "1 h 30 min"),
            (2.6e8, "3 d"),
            (-1e3, "-1 s"),
        ] {
            assert_eq!(duration(millis), text);
        }
    }
}

//! Steps of a time axis, and the text of moments. Times are microseconds of the report's local time, so no zone is needed here.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

pub const DAY: f64 = 86_400e6;
/// The epoch was a Thursday: weeks begin on Mondays.
const MONDAY: f64 = 4.0 * DAY;
const DAY_S: u32 = 86_400;
/// The steps below a month in seconds, and the steps of months, ascending.
const SECONDS: [u32; 15] =
    [1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200, DAY_S, 2 * DAY_S, 7 * DAY_S];
pub const MONTHS: [u16; 11] = [1, 3, 6, 12, 24, 60, 120, 240, 1_200, 6_000, 12_000];

/// A round distance between two ticks, or the length of a bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    Seconds(u32),
    Months(u16),
}

impl Step {
    /// The units of time that people count in, largest first.
    pub const UNITS: [Step; 5] =
        [Step::Months(1), Step::Seconds(7 * DAY_S), Step::Seconds(DAY_S), Step::Seconds(3_600), Step::Seconds(60)];

    /// The first step of at least `length`.
    pub fn at_least(length: f64) -> Self {
        let mut all = SECONDS.map(Step::Seconds).into_iter().chain(MONTHS.map(Step::Months));
        all.find(|step| step.length() >= length).unwrap_or(Step::Months(12_000))
    }

    /// The length; for months, the length of the shortest one.
    pub fn length(self) -> f64 {
        match self {
            Step::Seconds(seconds) => f64::from(seconds) * 1e6,
            Step::Months(months) => f64::from(months) * 28.0 * DAY,
        }
    }

    /// The last round moment at or before `at`.
    pub fn floor(self, at: f64) -> f64 {
        match self {
            Step::Seconds(_) => ((at - MONDAY) / self.length()).floor() * self.length() + MONDAY,
            Step::Months(months) => {
                let Some(day) = civil(at).map(DateTime::date) else { return f64::INFINITY };
                let past = (i64::from(day.year()) * 12 + i64::from(day.month()) - 1).rem_euclid(i64::from(months));
                let start = day.first_of_month().checked_sub(past.months()).and_then(|day| day.to_zoned(TimeZone::UTC));
                start.map_or(f64::INFINITY, |start| start.timestamp().as_microsecond() as f64)
            }
        }
    }

    /// The spans of this length that hold `first`, `last` and all times between.
    pub fn spans(self, first: f64, last: f64) -> Vec<(f64, f64)> {
        let next = |from: &f64| match self {
            Step::Seconds(_) => from + self.length(),
            // Each month has 28 to 31 days: this is a day in the month after the span.
            Step::Months(months) => self.floor(from + f64::from(months) * 30.5 * DAY + 2.0 * DAY),
        };
        let starts = std::iter::successors(Some(self.floor(first)), |from| Some(next(from)));
        starts.take_while(|from| *from <= last).map(|from| (from, next(&from))).collect()
    }

    /// The name of a span for a tooltip.
    pub fn name(self, (from, to): (f64, f64)) -> String {
        match self {
            Step::Seconds(DAY_S) => moment(from),
            Step::Months(1) => written(from, "%B %Y"),
            _ => span(from, to),
        }
    }

    fn label(self, at: f64, is_first: bool) -> String {
        let needs_year = is_first || written(at, "%j") == "001";
        let format = match self {
            Step::Months(12..) => "%Y",
            Step::Months(_) if needs_year => "%b %Y",
            Step::Months(_) => "%b",
            Step::Seconds(DAY_S..) if needs_year => "%-d %b %Y",
            Step::Seconds(step) if step >= DAY_S || at % DAY == 0.0 => "%-d %b",
            Step::Seconds(60..) => "%H:%M",
            Step::Seconds(_) => "%H:%M:%S",
        };
        written(at, format)
    }
}

/// About `wanted` round moments from `first` to `last`, with their labels.
pub fn ticks(first: f64, last: f64, wanted: f64) -> Vec<(f64, String)> {
    let step = Step::at_least((last - first) / wanted);
    let moments = step.spans(first, last).into_iter().map(|(from, _)| from).filter(|at| *at >= first);
    moments.enumerate().map(|(nth, at)| (at, step.label(at, nth == 0))).collect()
}

/// `2026-11-20 08:00`, with seconds if they are not zero; only the date at midnight.
pub fn moment(at: f64) -> String {
    let whole = [(DAY, "%Y-%m-%d"), (60e6, "%Y-%m-%d %H:%M")].into_iter().find(|(unit, _)| at % unit == 0.0);
    written(at, whole.map_or("%Y-%m-%d %H:%M:%S", |(_, format)| format))
}

/// A span without a repeated date: `2026-11-20 08:00 to 10:00`.
pub fn span(from: f64, to: f64) -> String {
    let (start, end) = (moment(from), moment(to));
    match (start.split_once(' '), end.split_once(' ')) {
        (Some((day, _)), Some((same_day, time))) if day == same_day => format!("{start} to {time}"),
        _ => format!("{start} to {end}"),
    }
}

fn written(at: f64, format: &str) -> String {
    civil(at).map_or_else(|| "out of range".to_owned(), |time| time.strftime(format).to_string())
}

#[expect(clippy::cast_possible_truncation, reason = "an out-of-range time saturates, and is refused by the library")]
fn civil(at: f64) -> Option<DateTime> {
    Timestamp::from_microsecond(at as i64).ok().map(|stamp| TimeZone::UTC.to_datetime(stamp))
}

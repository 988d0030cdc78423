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
const MONTHS: [u16; 11] = [1, 3, 6, 12, 24, 60, 120, 240, 1_200, 6_000, 12_000];

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
            Step::Seconds(DAY_S..) => "%-d %b",
            Step::Seconds(_) if at % DAY == 0.0 => "%-d %b",
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
    if at % DAY == 0.0 {
        written(at, "%Y-%m-%d")
    } else if at % 60e6 == 0.0 {
        written(at, "%Y-%m-%d %H:%M")
    } else {
        written(at, "%Y-%m-%d %H:%M:%S")
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> f64 {
        let time: DateTime = text.parse().unwrap();
        TimeZone::UTC.to_timestamp(time).unwrap().as_microsecond() as f64
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
            let labels: Vec<String> = ticks(at(first), at(last), 7.0).into_iter().map(|(_, label)| label).collect();
            assert_eq!(labels, expected, "{first} to {last}");
        }
    }

    #[test]
    fn spans_are_whole_calendar_months_without_holes() {
        for months in MONTHS {
            let step = Step::Months(months);
            let spans = step.spans(at("1999-02-28T12:00"), at("2026-11-20T08:00"));
            assert!(spans.windows(2).all(|pair| pair[0].1 == pair[1].0), "{months}: {spans:?}");
            assert!(spans.iter().all(|(from, to)| step.floor(*from) == *from && from < to), "{months}: {spans:?}");
            let expected = (27 * 12 + 10) / usize::from(months);
            assert!((expected..=expected + 2).contains(&spans.len()), "{months}: {}", spans.len());
        }
    }

    #[test]
    fn moments_and_spans_are_short() {
        assert_eq!(moment(at("2026-11-20T00:00")), "2026-11-20");
        assert_eq!(moment(at("2026-11-20T08:00:07.5")), "2026-11-20 08:00:07");
        assert_eq!(span(at("2026-11-20T08:00"), at("2026-11-20T10:00")), "2026-11-20 08:00 to 10:00");
        assert_eq!(span(at("2026-11-20T08:00"), at("2026-11-21T10:00")), "2026-11-20 08:00 to 2026-11-21 10:00");
        assert_eq!(moment(1e300), "out of range");
    }
}

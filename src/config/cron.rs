//! Cron expressions, in UTC only.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::model::Instant;

/// A cron expression of 5 fields (minute, hour, day of the month, month, weekday), or of 6 with seconds first. If days of the month and
/// weekdays are both given, both must match. Times are UTC: in a zone with summer time, a daily job would be skipped
/// in spring and doubled in autumn.
#[derive(Clone)]
pub struct Cron {
    text: String,
    schedule: Box<cron::Schedule>,
}

impl Cron {
    /// The first moment after `after`; `None` if there is none in the supported years.
    pub fn next_after(&self, after: Instant) -> Option<Instant> {
        let after = DateTime::<Utc>::from_timestamp(after.seconds(), 0)?;
        let next = self.schedule.after(&after).next()?;
        Some(Instant::from_seconds(next.timestamp())).filter(|next| *next < Instant::LATEST)
    }

    /// The first moment after `since`. After the clock was set back, `since` becomes `now`: the schedule must not wait until the
    /// clock has caught up.
    pub fn next_since(&self, since: &mut Instant, now: Instant) -> Option<Instant> {
        *since = now.min(*since);
        self.next_after(*since)
    }

    /// The `count`th moment before `before`, from 1; `None` if there is none in the supported years.
    pub fn nth_before(&self, count: usize, before: Instant) -> Option<Instant> {
        let before = DateTime::<Utc>::from_timestamp(before.seconds(), 0)?;
        let moment = self.schedule.after(&before).rev().nth(count.checked_sub(1)?)?;
        Some(Instant::from_seconds(moment.timestamp())).filter(|moment| *moment >= Instant::EARLIEST)
    }

    /// The time between the next two moments after `after`.
    pub fn interval(&self, after: Instant) -> Duration {
        let first = self.next_after(after);
        let second = first.and_then(|first| self.next_after(first));
        second.zip(first).map_or(Duration::from_secs(86_400), |(second, first)| second.since(first))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Cron {
    type Err = String;

    /// # Errors
    /// A sentence that explains the mistake.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let whole = match fields.len() {
            5 => format!("0 {}", fields.join(" ")),
            6 => fields.join(" "),
            1 => return Err(format!("{text:?} has 1 field, not 5 or 6")),
            count => return Err(format!("{text:?} has {count} fields, not 5 or 6")),
        };
        // Programs disagree on which weekday has the number 1.
        if fields.last().is_some_and(|weekdays| weekdays.bytes().any(|byte| byte.is_ascii_digit())) {
            return Err(format!("{text:?}: write weekdays by name (MON, TUE-FRI), not by number"));
        }
        let schedule = cron::Schedule::from_str(&whole)
            .map_err(|_| format!("{text:?} is not a cron expression such as \"*/5 * * * *\""))?;
        let cron = Self { text: text.to_owned(), schedule: Box::new(schedule) };
        match cron.next_after(Instant::from_seconds(1_767_225_600)) {
            Some(_) => Ok(cron),
            None => Err(format!("{text:?} never matches a date")),
        }
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Cron {}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(text: &str, after: &str) -> String {
        let cron: Cron = text.parse().unwrap();
        cron.next_after(after.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn five_fields_begin_at_the_full_minute_and_six_with_seconds() {
        for (text, after, expected) in [
            ("* * * * *", "2026-11-20T16:00:00Z", "2026-11-20T16:01:00Z"),
            ("* * * * *", "2026-11-20T16:00:59.5Z", "2026-11-20T16:01:00Z"),
            ("*/5 * * * *", "2026-11-20T16:00:00Z", "2026-11-20T16:05:00Z"),
            ("*/2 * * * * *", "2026-11-20T16:00:00.5Z", "2026-11-20T16:00:02Z"),
            ("0 3 * * *", "2026-11-20T03:00:00Z", "2026-11-21T03:00:00Z"),
            ("0 4 * * SUN", "2026-11-20T00:00:00Z", "2026-11-22T04:00:00Z"),
            ("0 4 * * Mon-Fri", "2026-11-20T05:00:00Z", "2026-11-23T04:00:00Z"),
            ("30 23 28-31 DEC *", "2026-11-20T00:00:00Z", "2026-12-28T23:30:00Z"),
            ("0 0 29 2 *", "2026-11-20T00:00:00Z", "2028-02-29T00:00:00Z"),
        ] {
            assert_eq!(next(text, after), expected, "{text} after {after}");
        }
        let daily: Cron = "0 3 * * *".parse().unwrap();
        assert_eq!(daily.interval("2026-11-20T16:00:00Z".parse().unwrap()), Duration::from_secs(86_400));
    }

    #[test]
    fn earlier_moments_are_counted_backwards() {
        for (text, count, before, expected) in [
            ("* * * * *", 1, "2026-11-20T16:00:30Z", "2026-11-20T16:00:00Z"),
            ("* * * * *", 4, "2026-11-20T16:00:30Z", "2026-11-20T15:57:00Z"),
            ("0,5 * * * * *", 4, "2026-11-20T16:00:04Z", "2026-11-20T15:58:05Z"),
            ("0,5 * * * * *", 4, "2026-11-20T16:00:58Z", "2026-11-20T15:59:00Z"),
            ("0 3 * * *", 4, "2026-03-02T16:00:00Z", "2026-02-27T03:00:00Z"),
            ("0 0 29 2 *", 1, "2026-11-20T00:00:00Z", "2024-02-29T00:00:00Z"),
        ] {
            let cron: Cron = text.parse().unwrap();
            let moment = cron.nth_before(count, before.parse().unwrap()).unwrap();
            assert_eq!(moment.to_string(), expected, "{count} before {before}: {text}");
        }
    }

    #[test]
    fn a_schedule_does_not_wait_for_a_clock_that_was_set_back() {
        let cron: Cron = "0 * * * *".parse().unwrap();
        let at = |text: &str| text.parse::<Instant>().unwrap();
        let (mut since, next) = (at("2026-11-20T16:10:00Z"), Some(at("2026-11-20T17:00:00Z")));
        for now in ["2026-11-20T16:20:00Z", "2026-11-20T18:20:00Z"] {
            assert_eq!(cron.next_since(&mut since, at(now)), next, "{now}");
        }
        let mut since = at("2036-11-20T16:10:00Z");
        for now in ["2026-11-20T16:20:00Z", "2026-11-20T17:00:00Z"] {
            assert_eq!(cron.next_since(&mut since, at(now)), next, "{now}");
        }
    }

    #[test]
    fn an_invalid_expression_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "0 fields"),
            ("* * * *", "4 fields"),
            ("@daily", "1 field"),
            ("* * * * * * 2030", "7 fields"),
            ("0 4 * * 1", "by name"),
            ("0 4 * * 0-5", "by name"),
            ("0 4 * * */2", "by name"),
            ("61 * * * *", "not a cron expression"),
            ("* * * * someday", "not a cron expression"),
            ("0 0 30 2 *", "never matches a date"),
        ] {
            let refused = text.parse::<Cron>().unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }
}

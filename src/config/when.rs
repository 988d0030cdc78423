//! Dates on the command line.

use std::str::FromStr;
use std::time::Duration;

use crate::model::Instant;

use super::parse_duration;

/// A moment as a person gives it: RFC 3339, a day (`2026-11-20`: its first moment, UTC), or an age (`-30d`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    At(Instant),
    Ago(Duration),
}

impl When {
    pub fn resolve(self, now: Instant) -> Instant {
        match self {
            When::At(at) => at,
            When::Ago(age) => now.minus(age),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused =
            || format!("{text:?} is not a date: give 2026-11-20, 2026-11-20T08:00:00Z, or -30d for 30 days ago");
        if let Some(age) = text.strip_prefix('-') {
            return parse_duration(age).map(When::Ago).map_err(|_| refused());
        }
        let day_only = text.len() == "2026-11-20".len();
        let full = if day_only { format!("{text}T00:00:00Z") } else { text.to_owned() };
        let at: Instant = full.parse().map_err(|_| refused())?;
        if (Instant::EARLIEST..Instant::LATEST).contains(&at) {
            Ok(When::At(at))
        } else {
            Err(format!("{text:?} lies outside the years 2000 to 2099"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_resolve_against_now() {
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
    fn other_texts_are_refused_with_the_forms_that_work() {
        for text in ["", "-", "30d", "2026-13-01", "2026-02-30", "yesterday", "-30", "2026/11/20", "20.11.2026"] {
            let message = text.parse::<When>().unwrap_err();
            assert!(message.contains("-30d") && message.contains("2026-11-20"), "{text}: {message}");
        }
        assert!("1999-12-31".parse::<When>().is_err() && "2100-01-01".parse::<When>().is_err());
    }
}

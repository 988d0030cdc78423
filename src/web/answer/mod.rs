//! What the page and the API both show, as plain values: the same for people and for programs.

pub mod coverage;
pub mod findings;
pub mod quarantine;
pub mod reports;
pub mod sessions;
pub mod sql;
pub mod standing;

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::config::When;
use crate::model::{Instant, Range, TeamId};
use crate::report::{TeamNameError, TeamNames, Zone};

use super::Shown;
use super::input::Input;
use super::problem::Problem;

/// A list or a look-up is answered within this, or not.
pub const TIME_MAX: Duration = Duration::from_secs(15);
/// What is looked at when nobody says since when.
const PERIOD_DAYS: u64 = 30;
const DAY_SECONDS: u64 = 86_400;

/// Which team a request is about, by id or name: one, or `None` for all of the archive.
///
/// # Errors
/// When the archive cannot be read or does not hold the team, and when two teams have that name.
pub async fn asked_teams(shown: &Shown, input: &Input) -> Result<(Option<TeamId>, Vec<TeamId>), Problem> {
    let held = shown.asking.teams().await?;
    let Some(asked) = input.get("team") else { return Ok((None, held)) };
    let team = match held.iter().find(|team| team.as_str() == asked) {
        Some(team) => team.clone(),
        None => {
            let names = shown.asking.names().await?;
            named(&names, asked)?.clone()
        }
    };
    Ok((Some(team.clone()), vec![team]))
}

/// The team that is meant by an id or a name.
///
/// # Errors
/// When none is, or two are.
pub fn named<'n>(names: &'n TeamNames, asked: &str) -> Result<&'n TeamId, Problem> {
    names.resolve(asked).map_err(|error| match error {
        TeamNameError::Shared { .. } => Problem::bad(error.to_string()),
        TeamNameError::Unknown { .. } => Problem::missing(error.to_string()),
    })
}

/// The zone that a request names, or `otherwise`.
///
/// # Errors
/// When there is no such zone.
pub fn zone(input: &Input, otherwise: Zone) -> Result<Zone, Problem> {
    Ok(input.parsed::<Zone>("tz")?.unwrap_or(otherwise))
}

/// The period from `from` until before `to`, half-open; the last 30 days where nothing is said.
///
/// # Errors
/// When a date is none, or the period is empty.
pub fn period(input: &Input, now: Instant, zone: &Zone) -> Result<Range, Problem> {
    let at = |name: &str| {
        let when = input.parsed::<When>(name)?;
        Ok::<_, Problem>(when.map(|when| when.resolve_in(now, zone.rules())))
    };
    let end = at("to")?.unwrap_or(now);
    let start = at("from")?.unwrap_or_else(|| end.minus(Duration::from_secs(PERIOD_DAYS * DAY_SECONDS)));
    if start >= end {
        return Err(Problem::bad(format!("the period is empty: it begins at {start} and ends at {end}")));
    }
    Ok(Range { start, end })
}

/// A moment as a literal of SQL, to the microsecond: the planner leaves out files only where it sees the value.
pub fn literal(at: Instant) -> String {
    format!("make_timestamp({})", at.micros())
}

/// A column of microseconds since the epoch.
fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
    i64::deserialize(deserializer).map(of_micros)
}

/// The same, where it may be NULL.
fn maybe_moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Instant>, D::Error> {
    Ok(Option::<i64>::deserialize(deserializer)?.map(of_micros))
}

fn of_micros(micros: i64) -> Instant {
    Instant::from_nanos(micros.saturating_mul(1_000))
}

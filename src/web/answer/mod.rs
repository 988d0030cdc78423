//! The data of the page and the API, as plain values.

pub mod coverage;
pub mod findings;
pub mod quarantine;
pub mod reports;
pub mod sessions;
pub mod sql;
pub mod health;

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::config::When;
use crate::model::{Instant, Range, TeamId};
use crate::report::{TeamNameError, TeamNames, Zone};

use super::AppState;
use super::input::Input;
use super::problem::Problem;

/// The deadline for a list or a lookup.
pub const TIME_MAX: Duration = Duration::from_secs(15);
/// The default period.
const PERIOD_DAYS: u64 = 30;
const DAY_SECONDS: u64 = 86_400;

/// The team of a request, by id or name; `None` for all teams of the archive.
///
/// # Errors
/// When the archive cannot be read or does not hold the team; when two teams have that name.
pub async fn asked_teams(state: &AppState, input: &Input) -> Result<(Option<TeamId>, Vec<TeamId>), Problem> {
    let archived = state.queries.teams().await?;
    let Some(asked) = input.get("team") else { return Ok((None, archived)) };
    let team = match archived.iter().find(|team| team.as_str() == asked) {
        Some(team) => team.clone(),
        None => {
            let names = state.queries.names().await?;
            named(&names, asked)?.clone()
        }
    };
    Ok((Some(team.clone()), vec![team]))
}

/// The team with this id or name.
///
/// # Errors
/// When no team or more than one team matches.
pub fn named<'n>(names: &'n TeamNames, asked: &str) -> Result<&'n TeamId, Problem> {
    names.resolve(asked).map_err(|error| match error {
        TeamNameError::Shared { .. } => Problem::bad(error.to_string()),
        TeamNameError::Unknown { .. } => Problem::missing(error.to_string()),
    })
}

/// The time zone of a request, or `otherwise`.
///
/// # Errors
/// When the zone does not exist.
pub fn zone(input: &Input, otherwise: Zone) -> Result<Zone, Problem> {
    Ok(input.parsed::<Zone>("tz")?.unwrap_or(otherwise))
}

/// The half-open period from `from` to `to`; the last 30 days by default.
///
/// # Errors
/// When a date is invalid, or the period is empty.
pub fn period(input: &Input, now: Instant, zone: &Zone) -> Result<Range, Problem> {
    let at = |name: &str| {
        let when = input.parsed::<When>(name)?;
        Ok::<_, Problem>(when.map(|when| when.resolve_in(now, zone.rules())))
    };
    let end = at("to")?.unwrap_or(now);
    let start = at("from")?.unwrap_or_else(|| end.minus(Duration::from_secs(PERIOD_DAYS * DAY_SECONDS)));
    filled(Range { start, end })
}

/// # Errors
/// When the period is empty.
pub fn filled(period: Range) -> Result<Range, Problem> {
    let Range { start, end } = period;
    if start >= end {
        return Err(Problem::bad(format!("the period is empty: it begins at {start} and ends at {end}")));
    }
    Ok(period)
}

/// A moment as an SQL literal, to the microsecond: the planner can skip files only if it sees the value.
pub fn literal(at: Instant) -> String {
    format!("make_timestamp({})", at.micros())
}

/// A column of microseconds since the epoch.
fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
    i64::deserialize(deserializer).map(Instant::from_micros)
}

/// Like [`moment`], but the value can be NULL.
fn maybe_moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Instant>, D::Error> {
    Ok(Option::<i64>::deserialize(deserializer)?.map(Instant::from_micros))
}

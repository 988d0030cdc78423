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

use crate::model::{self, Instant, Range, TeamId};
use crate::report::{TeamNameError, TeamNames, Zone};

use super::AppState;
use super::input::Input;
use super::problem::Problem;

/// The deadline for a list or a lookup.
pub const TIME_MAX: Duration = Duration::from_secs(15);

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
pub fn named<'n>(names: &'n TeamNames, asked: &str) -> Result<&'n TeamId, Problem> {
    names.resolve(asked).map_err(|error| match error {
        TeamNameError::Shared { .. } => Problem::bad(error.to_string()),
        TeamNameError::Unknown { .. } => Problem::missing(error.to_string()),
    })
}

/// The half-open period from `from` to `to`; the last 30 days by default.
pub fn period(input: &Input, now: Instant, zone: &Zone) -> Result<Range, Problem> {
    let (to, from) = (input.parsed("to")?, input.parsed("from")?);
    model::period(from, to, now, zone.rules()).map_err(Problem::bad)
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

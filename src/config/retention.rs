//! Checks the retention classes by dataset and team.

use std::collections::BTreeMap;

use crate::model::{Retention, TeamId, TeamRetention};

use super::file::Classes;
use super::{ConfigError, file};

/// The value for no class: a team can exclude a dataset from expiry.
const FOREVER: &str = "forever";

pub(super) fn check_retention(
    section: &file::Retention,
    place: &impl Fn(&str) -> String,
) -> Result<TeamRetention, ConfigError> {
    let all = overridden(&Retention::default(), &section.classes(), |key| place(&format!("retention.{key}")))?;
    let mut teams = BTreeMap::new();
    for (team, classes) in &section.teams {
        if team.trim().is_empty() {
            return Err(ConfigError::invalid(place("retention.teams"), "a team's id is empty"));
        }
        let own = overridden(&all, classes, |key| place(&format!("retention.teams.{team:?}.{key}")))?;
        teams.insert(TeamId::from(team.as_str()), own);
    }
    Ok(TeamRetention { all, teams })
}

fn overridden(
    base: &Retention,
    Classes(classes): &Classes,
    place: impl Fn(&str) -> String,
) -> Result<Retention, ConfigError> {
    let mut found = base.clone();
    for (retained, text) in classes {
        match text.as_str() {
            FOREVER => drop(found.0.remove(retained)),
            text => {
                let class =
                    text.parse().map_err(|message: String| ConfigError::invalid(place(retained.as_str()), message))?;
                found.0.insert(*retained, class);
            }
        }
    }
    Ok(found)
}

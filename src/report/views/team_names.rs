//! The names of teams. Programs use ids, people use names; the names are untrusted text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::archive::{Archive, TeamState, team_name};
use crate::model::TeamId;

use crate::report::catalog::{nearest, or_near};
use crate::report::output::cell::printable;

/// A longer name is cut.
pub const NAME_CHARS_MAX: usize = 64;
/// Maximum number of teams in an error message.
const LISTED_MAX: usize = 10;

/// The teams of an archive and their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamNames {
    /// Cleaned names; `None` if a team has no known name.
    teams: BTreeMap<TeamId, Option<String>>,
    /// The number of teams with each name.
    counts: BTreeMap<String, usize>,
}

/// Why a text names no team.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TeamNameError {
    #[error("{} teams have the name {name:?}: give the id of one: {}", ids.len(), listed(ids))]
    Shared { name: String, ids: Vec<String> },
    #[error("unknown team {asked:?}{}", or_known(near, known))]
    Unknown { asked: String, near: Vec<String>, known: Vec<String> },
}

fn or_known(near: &[String], known: &[String]) -> String {
    match (near, known) {
        ([], []) => ": the archive has no team yet".to_owned(),
        ([], known) => format!(": the known teams are {}", listed(known)),
        (near, _) => or_near(near),
    }
}

fn listed(items: &[String]) -> String {
    let more = items.len().saturating_sub(LISTED_MAX);
    let shown = items[..items.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// A name for display: one line, without control characters, limited in length; `None` if nothing remains.
pub fn clean_name(name: &str) -> Option<String> {
    let text = printable(name);
    let invisible = |c: char| matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{00ad}');
    let words: Vec<String> =
        text.split_whitespace().map(|word| word.chars().filter(|c| !invisible(*c)).collect()).collect();
    let text = words.join(" ");
    let text = text.trim();
    match text.char_indices().nth(NAME_CHARS_MAX) {
        _ if text.is_empty() => None,
        Some((at, _)) => Some(format!("{}…", &text[..at])),
        None => Some(text.to_owned()),
    }
}

impl TeamNames {
    /// Teams with the names that the service sent.
    pub fn of(teams: impl IntoIterator<Item = (TeamId, Option<String>)>) -> Self {
        let mut names = Self::default();
        for (team, name) in teams {
            names.put(team, name.as_deref());
        }
        names
    }

    /// Adds a team, or changes its name.
    pub fn put(&mut self, team: TeamId, name: Option<&str>) {
        let name = name.and_then(clean_name);
        if let Some(name) = &name {
            *self.counts.entry(name.clone()).or_default() += 1;
        }
        if let Some(count) = self.teams.insert(team, name).flatten().and_then(|before| self.counts.get_mut(&before)) {
            *count -= 1;
        }
    }

    /// Adds a team with its archived name. Ignores a name that cannot be read: `verify` reports damage.
    pub fn put_archived(&mut self, archive: &Archive, state: &TeamState) {
        let name = state.name_file().and_then(|file| team_name(archive.store().as_ref(), &file.path).ok().flatten());
        self.put(state.team_id.clone(), name.as_deref());
    }

    /// Whether this is the id of one of the teams.
    pub fn holds(&self, team: &str) -> bool {
        self.teams.contains_key(team)
    }

    /// The name alone.
    pub fn name(&self, team: &str) -> Option<&str> {
        self.teams.get(team)?.as_deref()
    }

    /// The name if it is unique; else the name with the id, or the id alone. Printable.
    pub fn label(&self, team: &str) -> String {
        match self.name(team) {
            Some(name) if self.counts.get(name) == Some(&1) && !self.teams.contains_key(name) => name.to_owned(),
            _ => self.with_id(team),
        }
    }

    /// The name with the id: `Lighthouse VFX (0123abcd)`, or the id alone. Printable.
    pub fn with_id(&self, team: &str) -> String {
        match self.name(team) {
            Some(name) => format!("{name} ({})", printable(team)),
            None => printable(team),
        }
    }

    /// The team with this id or name; an id outranks a name. Case matters only if it distinguishes two teams.
    ///
    /// # Errors
    /// When two teams have the name, or none.
    pub fn resolve(&self, asked: &str) -> Result<&TeamId, TeamNameError> {
        if let Some((team, _)) = self.teams.get_key_value(asked) {
            return Ok(team);
        }
        let wanted = clean_name(asked).unwrap_or_default();
        let called = |is_it: &dyn Fn(&str) -> bool| -> Vec<&TeamId> {
            let named = self.teams.iter().filter(|(_, name)| name.as_deref().is_some_and(is_it));
            named.map(|(team, _)| team).collect()
        };
        let mut found = called(&|name| name == wanted);
        if found.is_empty() {
            found = called(&|name| name.to_lowercase() == wanted.to_lowercase());
        }
        match found.as_slice() {
            [one] => Ok(one),
            [] => {
                let words =
                    self.teams.keys().map(TeamId::as_str).chain(self.teams.values().flatten().map(String::as_str));
                let near = nearest(&wanted, words).iter().map(|near| printable(near)).collect();
                let known = self.teams.keys().map(|team| self.with_id(team.as_str())).collect();
                Err(TeamNameError::Unknown { asked: wanted, near, known })
            }
            many => {
                let ids = many.iter().map(|team| printable(team.as_str())).collect();
                Err(TeamNameError::Shared { name: wanted, ids })
            }
        }
    }
}

#[cfg(test)]
mod tests;

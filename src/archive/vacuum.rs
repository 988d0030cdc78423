//! Removes what no ledger line names any more, or ever did, when it is older than the grace.
//!
//! Readers, engines and copies that began before a commit go on with the files that it removed, and a slow writer's files
//! are never taken from it. All ages are told by the store's own clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::{GRACE_MIN, Instant, TeamId};
use crate::planted::{self, Bug};

use super::grace::Grace;
use super::ledger::Line;
use super::path::{ArchivePath, SCRATCH, TeamKey, ledger_of, salts_of, table_of};
use super::replay::{ledger_days, replay};
use super::store::{Listed, Store};
use super::text_lines::TextLines;
use super::{Archive, ArchiveError, Dataset, TeamWriter};

/// A file that no line names now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub path: String,
    pub bytes: u64,
}

/// The files of a team that no line names now, and the scratch files of the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leftovers {
    /// Older than the grace: `vacuum` removes these.
    pub expired: Vec<Leftover>,
    /// Younger: somebody may still read or name these.
    pub kept: Vec<Leftover>,
}

impl Archive {
    /// What [`TeamWriter::vacuum`] would do now.
    ///
    /// # Errors
    /// When the store fails, or the ledger does not check.
    pub fn leftovers(&self, team: &TeamId) -> Result<Leftovers, ArchiveError> {
        leftovers(self.store().as_ref(), self.id(), team, self.grace())
    }
}

impl TeamWriter {
    /// Removes files of the team that no line names and that are older than the grace, and old scratch files of the store.
    /// Returns what it removed, and what it left because it is younger.
    ///
    /// # Errors
    /// When the store fails, or the ledger does not check. Some files may then be removed already.
    pub fn vacuum(&mut self) -> Result<Leftovers, ArchiveError> {
        let (store, state) = (self.store(), self.state());
        let found = leftovers(store, &state.archive_id, &state.team_id, self.grace())?;
        let paths: Vec<&str> = found.expired.iter().map(|file| file.path.as_str()).collect();
        store.remove_all(&paths)?;
        Ok(found)
    }
}

/// The files first, the ledger second: a file that a commit names meanwhile is found to be named.
fn leftovers(store: &dyn Store, archive_id: &str, team: &TeamId, grace: Duration) -> Result<Leftovers, ArchiveError> {
    let key = TeamKey::of(team);
    let grace = match planted::is(Bug::VacuumWithoutGrace) {
        true => Duration::ZERO,
        false => grace.max(GRACE_MIN),
    };
    let grace = Grace::ending(store.now()?, grace);
    let early = planted::is(Bug::VacuumReadsFirst).then(|| replay(store, archive_id, team)).transpose()?;
    let listed = files_of(store, &key)?;
    // A snapshot is not trusted here: what it left out would be removed.
    let state = match early {
        Some(replay) => replay.state,
        None => replay(store, archive_id, team)?.state,
    };
    let recent = removed_within(store, &key, grace)?;
    let mut found = Leftovers::default();
    let salts: BTreeSet<String> = state.salt_paths().collect();
    let is_named = |path: &String| state.files.contains_key(path) || salts.contains(path);
    for entry in listed.into_iter().filter(|entry| !is_named(&entry.path)) {
        let is_kept = grace.covers(entry.modified) || recent.contains(&entry.path);
        let file = Leftover { path: entry.path, bytes: entry.bytes };
        if is_kept { found.kept.push(file) } else { found.expired.push(file) }
    }
    Ok(found)
}

/// The data files and the salts of a team, and the scratch files of all. A name that no archive gives is left to `verify`.
fn files_of(store: &dyn Store, key: &TeamKey) -> Result<Vec<Listed>, ArchiveError> {
    let mut found = store.list(SCRATCH)?;
    for dataset in Dataset::ALL {
        let listed = store.list(&table_of(dataset, key))?;
        found.extend(listed.into_iter().filter(|entry| is_data(&entry.path)));
    }
    let salts = store.list(&salts_of(key))?.into_iter();
    found.extend(salts.filter(|entry| matches!(ArchivePath::parse(&entry.path), Some(ArchivePath::Salt { .. }))));
    found.retain(|entry| entry.irregular.is_none());
    Ok(found)
}

fn is_data(path: &str) -> bool {
    matches!(ArchivePath::parse(path), Some(ArchivePath::Data(_)))
}

/// What the lines of each day remove whose file was written within the grace.
fn removed_within(store: &dyn Store, key: &TeamKey, grace: Grace) -> Result<BTreeSet<String>, ArchiveError> {
    let mut removed = BTreeSet::new();
    let modified: BTreeMap<String, Instant> =
        store.list(&ledger_of(key))?.into_iter().map(|entry| (entry.path, entry.modified)).collect();
    for day in ledger_days(store, key)? {
        let path = ArchivePath::Ledger { team: key.clone(), day }.to_string();
        if !modified.get(&path).is_none_or(|at| grace.covers(*at)) {
            continue;
        }
        for (text, number) in TextLines::new(store.read(&path)?, 0).zip(1..) {
            let text = text.map_err(|fault| fault.at(&path, number))?;
            // What an interrupted append left names nothing.
            if let Ok((line, _)) = Line::decode(&text.text) {
                removed.extend(line.body.removes);
            }
        }
    }
    Ok(removed)
}

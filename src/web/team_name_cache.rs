//! A cache of team names: a page shows many, and each name is in a file of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::TeamId;
use crate::report::{SnapshotSource, TeamNames};

/// The names, and the file of each name.
#[derive(Default)]
pub struct TeamNameCache {
    cached: Mutex<CachedNames>,
}

#[derive(Default)]
struct CachedNames {
    names: Arc<TeamNames>,
    files: BTreeMap<TeamId, Option<String>>,
}

impl TeamNameCache {
    /// The names of `teams`. `files` are the files with the names, as far as the daemon knows them. A name that cannot be read is
    /// left out: the page then shows the team's id.
    pub fn of(
        &self,
        place: &SnapshotSource,
        teams: &[TeamId],
        files: &BTreeMap<TeamId, Option<String>>,
    ) -> Arc<TeamNames> {
        let mut cached = self.cached.lock();
        let mut changed: Option<TeamNames> = None;
        for team in teams {
            let file = match (files.get(team), cached.files.contains_key(team)) {
                (Some(file), _) => file.clone(),
                (None, true) => continue,
                (None, false) => place.name_file(team).ok().flatten(),
            };
            if cached.files.get(team) == Some(&file) {
                continue;
            }
            let name = file.as_deref().and_then(|file| place.team_name(file).ok().flatten());
            changed.get_or_insert_with(|| (*cached.names).clone()).put(team.clone(), name.as_deref());
            cached.files.insert(team.clone(), file);
        }
        if let Some(names) = changed {
            cached.names = Arc::new(names);
        }
        cached.names.clone()
    }
}

//! An archive for repeated snapshots, for processes that serve it for years.

use std::path::Path;
use std::sync::Arc;

use crate::archive::{Archive, ArchiveError, Cache, FileEntry, LedgerExtent, TeamState, VerifyOptions, team_name};
use crate::model::{Location, TeamId, TeamRetention};
use crate::store::LocalStore;

use super::data::ViewData;
use super::pinning::pin_files;
use super::remote::Remote;
use crate::report::ReportError;
use crate::report::error::ARCHIVE_FAILED;

/// The source of an archive's snapshots. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SnapshotSource {
    archive: Archive,
    location: Location,
    root: String,
    /// For an archive in a bucket.
    cache: Option<Cache>,
    retention: Arc<TeamRetention>,
}

/// The ends of some teams' ledgers. They stay equal until a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extents(Vec<LedgerExtent>);

impl SnapshotSource {
    /// `location` is absolute. `cache` pins files of a bucket.
    ///
    /// # Errors
    /// [`ReportError::Path`] when the engine cannot read files at that place.
    pub fn new(archive: Archive, location: Location, cache: Cache) -> Result<Self, ReportError> {
        let (root, cache) = match &location {
            Location::Local(path) => (path.to_str().map(str::to_owned), None),
            Location::Bucket(bucket) => (Some(bucket.to_string()), Some(cache)),
        };
        let root = root.ok_or_else(|| ReportError::Path { path: location.to_string() })?;
        Ok(Self { archive, location, root, cache, retention: Arc::default() })
    }

    /// Snapshots compute due times from these classes.
    #[must_use]
    pub fn with_retention(self, retention: TeamRetention) -> Self {
        Self { retention: Arc::new(retention), ..self }
    }

    /// Each use of a cached file compares it with the ledger again.
    #[must_use]
    pub fn checking_cache(self) -> Self {
        Self { cache: self.cache.map(Cache::checking), ..self }
    }

    /// The archive's directory, if the whole archive is in it.
    pub fn directory(&self) -> Option<&Path> {
        self.location.directory().filter(|_| self.archive.store().as_split().is_none())
    }

    /// A snapshot without a team.
    pub fn empty_snapshot(&self) -> ViewData {
        let remote = self.cache.clone().map(|cache| Arc::new(Remote::new(cache)));
        let has_ledger_elsewhere = self.archive.store().as_split().is_some();
        ViewData { archive: Some(self.archive.clone()), remote, has_ledger_elsewhere, ..ViewData::default() }
    }

    /// Adds a team's current state to a snapshot.
    pub fn add(&self, data: &mut ViewData, state: &TeamState) {
        data.add_state(&self.root, state);
        data.add_retention(state, self.retention.of(&state.team_id));
    }

    /// The options of a check of the archive.
    pub fn checks(&self) -> &VerifyOptions {
        &self.archive.checks
    }

    pub fn archive_id(&self) -> &str {
        self.archive.id()
    }

    /// The teams of the archive.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn teams(&self) -> Result<Vec<TeamId>, ReportError> {
        self.archive.teams().map_err(failed)
    }

    /// The file that currently holds a team's name.
    ///
    /// # Errors
    /// When the archive cannot be read, or the ledger is invalid.
    pub fn name_file(&self, team: &TeamId) -> Result<Option<String>, ReportError> {
        let reader = self.archive.read(team).map_err(failed)?;
        Ok(reader.state().name_file().map(|file| file.path.clone()))
    }

    /// The name in such a file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn team_name(&self, name_file: &str) -> Result<Option<String>, ReportError> {
        team_name(self.archive.store().as_ref(), name_file).map_err(failed)
    }

    /// Adds a team's name to a snapshot. Ignores a name that cannot be read: `verify` reports damage.
    pub fn add_name(&self, data: &mut ViewData, state: &TeamState) {
        let name = state.name_file().and_then(|file| self.name_in(file).ok().flatten());
        data.names.put(state.team_id.clone(), name.as_deref());
    }

    /// The name in a file. For an archive in a bucket, the cache fetches the file once.
    fn name_in(&self, file: &FileEntry) -> Result<Option<String>, ReportError> {
        let Some(cache) = &self.cache else { return self.team_name(&file.path) };
        let pinned = pin_files(cache, &self.archive, std::slice::from_ref(file))?;
        let name = pinned.name_of(file);
        team_name(&LocalStore::new(pinned.directory()), &name).map_err(failed)
    }

    /// A snapshot of some teams, and the ends of their ledgers before it was read. `known` passes a team's state to its argument if the
    /// daemon has it in memory, and returns whether it did: then the ledger need not be read again.
    ///
    /// # Errors
    /// When the archive cannot be read, or a ledger is invalid.
    pub fn snapshot(
        &self,
        teams: &[TeamId],
        known: impl Fn(&TeamId, &mut dyn FnMut(&TeamState)) -> bool,
    ) -> Result<(ViewData, Extents), ReportError> {
        let extents = self.extents(teams)?;
        let mut data = self.empty_snapshot();
        for team in teams {
            let mut add = |state: &TeamState| {
                self.add(&mut data, state);
                self.add_name(&mut data, state);
            };
            if !known(team, &mut add) {
                add(self.archive.read(team).map_err(failed)?.state());
            }
        }
        Ok((data, extents))
    }

    /// The ends of some teams' ledgers. Opens no file.
    ///
    /// # Errors
    /// When the archive cannot be listed.
    pub fn extents(&self, teams: &[TeamId]) -> Result<Extents, ReportError> {
        let each = teams.iter().map(|team| self.archive.extent(team).map_err(failed));
        Ok(Extents(each.collect::<Result<_, _>>()?))
    }
}

fn failed(error: ArchiveError) -> ReportError {
    ReportError::Engine(format!("{ARCHIVE_FAILED}{error}"))
}

//! How far the open tables are behind the ledgers, from the files of the archive alone. No file records a failed
//! publication: its files stay pending.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;

use crate::archive::{Archive, TeamState};
use crate::model::TeamKey;
use crate::model::path::DataPath;
use crate::model::{Instant, LedgerSeq, TeamId};

use super::manifest::Entry;
use super::table::Table;
use super::{LakeError, TableId};

const NANOS_PER_MILLI: i64 = 1_000_000;

/// The lag of a published table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableLag {
    pub table: &'static str,
    /// 0 if the newest version cannot be read.
    pub version: u64,
    /// The time of the newest snapshot. A publication without changed files makes none.
    pub published_at: Option<Instant>,
    /// The number of commits whose changes the table lacks: files that it does not name yet, or removed files that it still
    /// names. `None` if it is unknown: the table cannot be read, or the ledgers name no files of it.
    pub commits_behind: Option<u64>,
    /// The time of the oldest of these commits.
    pub behind_since: Option<Instant>,
    /// Why the newest version cannot be read.
    pub error: Option<String>,
}

/// The published tables, while the ledgers are read.
#[derive(Debug, Default)]
pub struct PublicationLag {
    tables: Vec<Pending>,
    teams: BTreeMap<TeamKey, TeamId>,
}

#[derive(Debug)]
struct Pending {
    id: TableId,
    lag: TableLag,
    /// Files that the table names and no ledger has shown yet.
    named: HashSet<String>,
    /// Live files that the table does not name.
    unnamed: Vec<String>,
}

impl PublicationLag {
    /// Reads the newest version of each table. Read the ledgers after it: they can only be newer.
    pub fn read(archive: &Archive) -> Self {
        let of = |id: TableId| {
            let table = Table::read(archive.store().as_ref(), id.as_str());
            let found = table.and_then(|table| table.map(|table| Pending::of(archive, id, &table)).transpose());
            found.unwrap_or_else(|error| Some(Pending::unreadable(id, &error)))
        };
        Self { tables: TableId::all().into_iter().filter_map(of).collect(), teams: BTreeMap::new() }
    }

    /// Compares the tables with a team's live files.
    pub fn add(&mut self, state: &TeamState) {
        if self.tables.is_empty() {
            return;
        }
        self.teams.insert(TeamKey::of(&state.team_id), state.team_id.clone());
        for file in state.files.values() {
            for table in self.tables.iter_mut().filter(|table| table.id == TableId::Dataset(file.dataset)) {
                if !table.named.remove(&file.path) {
                    table.unnamed.push(file.path.clone());
                }
            }
        }
    }

    /// The lag of each table, after all teams were added. Reads the newest lines of the teams with pending files.
    ///
    /// # Errors
    /// When the store fails, or a line is invalid.
    pub fn finish(self, archive: &Archive) -> Result<Vec<TableLag>, LakeError> {
        let mut pending: BTreeMap<TeamKey, BTreeSet<String>> = BTreeMap::new();
        for path in self.tables.iter().flat_map(Pending::paths) {
            if let Some(data) = DataPath::parse(path) {
                pending.entry(data.team).or_default().insert(path.clone());
            }
        }
        let mut commits: BTreeMap<String, (TeamKey, LedgerSeq, Instant)> = BTreeMap::new();
        for (key, paths) in pending {
            if let Some(team) = self.teams.get(&key) {
                let found = archive.commits_of(team, paths)?;
                commits.extend(found.into_iter().map(|(path, (seq, at))| (path, (key.clone(), seq, at))));
            }
        }
        Ok(self.tables.into_iter().map(|table| table.finish(&commits)).collect())
    }
}

impl Pending {
    fn of(archive: &Archive, id: TableId, table: &Table) -> Result<Self, LakeError> {
        let place = table.place()?;
        let mut named = HashSet::new();
        // The ledgers name no files of the tables that a publication writes whole.
        if matches!(id, TableId::Dataset(_)) {
            let manifests = table.manifests(archive.store().as_ref(), &place)?;
            let entries = manifests.into_iter().flat_map(|manifest| manifest.entries);
            named.extend(entries.filter(Entry::is_live).map(|entry| entry.file.path));
        }
        let snapshot = table.metadata.current();
        let published_at =
            snapshot.map(|snapshot| Instant::from_nanos(snapshot.timestamp_ms.saturating_mul(NANOS_PER_MILLI)));
        let lag = TableLag { version: table.version, published_at, ..TableLag::of(id) };
        Ok(Self { id, lag, named, unnamed: Vec::new() })
    }

    fn unreadable(id: TableId, error: &LakeError) -> Self {
        let lag = TableLag { error: Some(error.to_string()), ..TableLag::of(id) };
        Self { id, lag, named: HashSet::new(), unnamed: Vec::new() }
    }

    fn paths(&self) -> impl Iterator<Item = &String> {
        let is_known = self.lag.error.is_none();
        self.named.iter().chain(&self.unnamed).filter(move |_| is_known)
    }

    fn finish(self, commits: &BTreeMap<String, (TeamKey, LedgerSeq, Instant)>) -> TableLag {
        let of_table: BTreeSet<_> = self.paths().filter_map(|path| commits.get(path)).collect();
        let is_known = self.lag.error.is_none() && matches!(self.id, TableId::Dataset(_));
        TableLag {
            commits_behind: is_known.then_some(of_table.len() as u64),
            behind_since: of_table.iter().map(|(_, _, at)| *at).min(),
            ..self.lag
        }
    }
}

impl TableLag {
    fn of(id: TableId) -> Self {
        let table = id.as_str();
        Self { table, version: 0, published_at: None, commits_behind: None, behind_since: None, error: None }
    }
}

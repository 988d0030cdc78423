//! An archive as a whole: its manifest, its teams, and access for readers and writers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rayon::prelude::*;

use crate::model::path::{ArchivePath, LEDGER, LOCK_OF_NEW, SNAPSHOTS, TABLES, ledger_of, lock_of};
use crate::model::{Instant, TeamId, TeamKey};
use crate::store::{Guard, Listed, Store, StoreError, if_there, read_listed};

use super::manifest::{Manifest, read_ledger_manifest, read_manifest};
use super::random::Random;
use super::reader::TeamReader;
use super::{ArchiveError, Signer, VerifyOptions};
use crate::archive::ledger::ledger_files::ledger_files;
use crate::archive::ledger::line::{self, LedgerLine};
use crate::archive::ledger::replay::{Replay, ReplayFiles};
use crate::archive::ledger::snapshot::{self, SNAPSHOT_LINES};
use crate::archive::ledger::text_lines::TextLines;

/// The number of team states that are read ahead.
const TEAMS_READ_AT_ONCE: usize = 32;

/// The end of a ledger from the list of its files. It stays equal until something is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerExtent {
    files: u64,
    bytes: u64,
}

/// An opened archive. Cheap to clone.
#[derive(Clone)]
pub struct Archive {
    store: Arc<dyn Store>,
    id: String,
    /// The current signer, shared by open writers.
    signer: Arc<RwLock<Option<Arc<Signer>>>>,
    pub(super) snapshot_lines: u64,
    /// The options of a check of this archive, as configured: its grace and the expected public keys.
    pub checks: VerifyOptions,
    random: Random,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Archive {
    /// Opens an existing archive.
    ///
    /// # Errors
    /// [`ArchiveError::NotAnArchive`], [`ArchiveError::Version`], an error that [`ArchiveError::is_wrong_ledger`], or an error of
    /// the store.
    pub fn open(store: Arc<dyn Store>) -> Result<Self, ArchiveError> {
        let manifest = read_manifest(store.as_ref())?.ok_or(ArchiveError::NotAnArchive)?;
        manifest.check_ledger(store.as_ref())?;
        Ok(Self::of(store, manifest))
    }

    /// Opens an archive, or creates one with the id from `new_id`.
    ///
    /// # Errors
    /// [`ArchiveError::ManifestMissing`] when data exists without a manifest; else as [`Archive::open`].
    pub fn open_or_create(store: Arc<dyn Store>, new_id: impl FnOnce() -> String) -> Result<Self, ArchiveError> {
        // A snapshot exists from the first commit on, and the manifest was durable before. A list of all files can be long.
        let has_commits = || store.list(SNAPSHOTS).is_ok_and(|snapshots| !snapshots.is_empty());
        if let Some(manifest) = read_manifest(store.as_ref())?.filter(|_| has_commits()) {
            manifest.check_ledger(store.as_ref())?;
            return Ok(Self::of(store, manifest));
        }
        let guard = store.lock(LOCK_OF_NEW)?;
        let first = |directory| Ok(store.list(directory)?.into_iter().next().map(|found| found.path));
        let has_data = || -> Result<Option<String>, StoreError> { Ok(first(TABLES)?.or(first(LEDGER)?)) };
        let manifest = match read_manifest(store.as_ref())? {
            Some(manifest) => manifest,
            None => match has_data()? {
                Some(found) => {
                    return Err(match read_ledger_manifest(store.as_ref())? {
                        Some(ledger) if store.as_split().is_some() && !found.starts_with(TABLES) => {
                            ArchiveError::OtherLedger { found: ledger.id }
                        }
                        _ => ArchiveError::ManifestMissing { found },
                    });
                }
                None => Manifest::new(store.as_ref(), new_id()),
            },
        };
        // Write the manifest again: its writer can have died before the sync, and the first commit depends on it.
        let manifest = match manifest.write(store.as_ref()) {
            // In a bucket no lock keeps other processes out: one of them was first.
            Err(ArchiveError::Store(StoreError::Conflict { .. })) => {
                read_manifest(store.as_ref())?.ok_or(ArchiveError::NotAnArchive)?
            }
            written => written.map(|()| manifest)?,
        };
        manifest.begin_ledger(store.as_ref())?;
        drop(guard);
        Ok(Self::of(store, manifest))
    }

    /// Whether an archive lies in `store`, or the ledger of one.
    pub fn is_at(store: &dyn Store) -> bool {
        let found = |read: Result<Option<Manifest>, ArchiveError>| {
            matches!(read, Ok(Some(_)) | Err(ArchiveError::Version { .. }))
        };
        found(read_manifest(store)) || found(read_ledger_manifest(store))
    }

    fn of(store: Arc<dyn Store>, manifest: Manifest) -> Self {
        Self {
            store,
            id: manifest.id,
            signer: Arc::default(),
            snapshot_lines: SNAPSHOT_LINES,
            checks: VerifyOptions::default(),
            random: Random::default(),
        }
    }

    /// For tests: writers of this archive keep a snapshot after this many lines, so that readers replay less.
    #[must_use]
    pub fn snapshots_every(self, lines: u64) -> Self {
        Self { snapshot_lines: lines, ..self }
    }

    /// `vacuum` keeps unnamed files for this long; see [`GRACE_MIN`](crate::model::GRACE_MIN).
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.checks.grace = grace;
        self
    }

    pub fn grace(&self) -> Duration {
        self.checks.grace
    }

    /// Writers of this archive take random numbers from `source`, so that a simulation is repeatable.
    #[must_use]
    pub fn with_random(self, source: Arc<dyn Fn() -> u64 + Send + Sync>) -> Self {
        Self { random: Random::new(source), ..self }
    }

    pub(super) fn random(&self) -> &Random {
        &self.random
    }

    /// Writers of this archive sign the heads of their commits.
    #[must_use]
    pub fn with_signer(self, signer: Option<Arc<Signer>>) -> Self {
        Self { signer: Arc::new(RwLock::new(signer)), ..self }
    }

    /// Like [`Archive::with_signer`], for all open writers from their next commit on.
    pub fn set_signer(&self, signer: Option<Arc<Signer>>) {
        *self.signer.write() = signer;
    }

    pub fn signer(&self) -> Option<Arc<Signer>> {
        self.signer.read().clone()
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Takes the lock of a team's writer.
    pub(super) fn lock(&self, team: &TeamId) -> Result<Box<dyn Guard>, ArchiveError> {
        self.store.lock(&lock_of(&TeamKey::of(team))).map_err(|error| match error {
            StoreError::Locked { .. } => ArchiveError::Locked { team: team.clone() },
            other => other.into(),
        })
    }

    /// The teams that have a ledger, in the order of their paths.
    ///
    /// # Errors
    /// When the store fails, or the first line of a ledger names no team.
    pub fn teams(&self) -> Result<Vec<TeamId>, ArchiveError> {
        Ok(self.ledgers()?.into_iter().map(|files| files.team).collect())
    }

    /// Opens a team for reading, in its current state.
    pub fn read(&self, team: &TeamId) -> Result<TeamReader, ArchiveError> {
        let replay = ReplayFiles::list(self.store.as_ref(), &self.id, team)?.replay_for_reading()?;
        Ok(TeamReader::new(Arc::clone(&self.store), replay.state, replay.snapshot))
    }

    /// Opens the teams that `keeps` accepts, in the order of their paths, as they were when the ledgers were listed. Lists them once,
    /// and reads several teams in parallel.
    pub fn read_each(
        &self,
        keeps: &dyn Fn(&TeamId) -> bool,
        mut take: impl FnMut(TeamReader),
    ) -> Result<(), ArchiveError> {
        self.try_each(keeps, |_, reader| reader.map(&mut take))
    }

    /// Like [`Archive::read_each`], but `take` decides what the error of one team's ledger means for the others.
    pub fn try_each(
        &self,
        keeps: &dyn Fn(&TeamId) -> bool,
        mut take: impl FnMut(&TeamKey, Result<TeamReader, ArchiveError>) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let (mut ledgers, invalid) = self.all_ledgers()?;
        invalid.into_iter().try_for_each(|(team, error)| take(&team, Err(error)))?;
        ledgers.retain(|files| keeps(&files.team));
        for some in ledgers.chunks(TEAMS_READ_AT_ONCE) {
            let replays: Vec<_> = some.par_iter().map(ReplayFiles::replay_for_reading).collect();
            for (files, replay) in some.iter().zip(replays) {
                let open = |replay: Replay| TeamReader::new(Arc::clone(&self.store), replay.state, replay.snapshot);
                take(&TeamKey::of(&files.team), replay.map(open))?;
            }
        }
        Ok(())
    }

    /// The end of the team's ledger. Opens no file.
    pub fn extent(&self, team: &TeamId) -> Result<LedgerExtent, ArchiveError> {
        let files = ledger_files(self.store.as_ref(), &TeamKey::of(team))?;
        Ok(LedgerExtent { files: files.len() as u64, bytes: files.iter().map(|(_, bytes)| bytes).sum() })
    }

    /// The ledgers of all teams.
    fn ledgers(&self) -> Result<Vec<ReplayFiles<'_>>, ArchiveError> {
        let (found, mut invalid) = self.all_ledgers()?;
        if invalid.is_empty() { Ok(found) } else { Err(invalid.remove(0).1) }
    }

    /// The ledgers of all teams, and those that do not say their team. A team with a snapshot must have a ledger.
    fn all_ledgers(&self) -> Result<(Vec<ReplayFiles<'_>>, InvalidLedgers), ArchiveError> {
        let (store, archive_id) = (self.store.as_ref(), self.id.as_str());
        let (mut found, mut invalid) = (Vec::new(), Vec::new());
        // In the order of `ReplayFiles::list`.
        let mut snapshots = snapshot::all_listed(store)?;
        let files = store.list(LEDGER)?.into_iter().filter_map(|entry| match ArchivePath::parse(&entry.path) {
            Some(ArchivePath::Ledger { team, day }) => Some((team, day, entry)),
            _ => None,
        });
        let files: Vec<(TeamKey, Instant, Listed)> = files.collect();
        for of_team in files.chunk_by(|(a, ..), (b, ..)| a == b) {
            let (key, _, first) = &of_team[0];
            // A later file follows a whole line, so the team exists, and its name says its id.
            let team = match key.team_id().filter(|_| of_team.len() > 1) {
                Some(team) => Ok(Some(team)),
                None => team_of_first_line(store, key, first),
            };
            match team {
                Ok(Some(team)) => {
                    let ledger = of_team.iter().map(|(_, day, file)| (*day, file.bytes)).collect();
                    let snapshots = snapshots.remove(key).unwrap_or_default();
                    found.push(ReplayFiles { store, archive_id, team, snapshots, ledger });
                }
                Ok(None) => {}
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    snapshots.remove(key);
                    invalid.push((key.clone(), error));
                }
            }
        }
        invalid.extend(snapshots.into_iter().map(|(key, snapshots)| {
            let error = ArchiveError::LedgerLost { path: ledger_of(&key), line: snapshot::newest(&snapshots) };
            (key, error)
        }));
        Ok((found, invalid))
    }
}

/// Ledgers that do not say their team, by their place.
type InvalidLedgers = Vec<(TeamKey, ArchiveError)>;

/// `None` if the file holds no whole line; then a writer can have removed it since the list.
fn team_of_first_line(store: &dyn Store, key: &TeamKey, file: &Listed) -> Result<Option<TeamId>, ArchiveError> {
    let read = if_there(read_listed(store, file))?;
    let Some(mut lines) = read.map(|content| TextLines::new(&file.path, content, 0)) else { return Ok(None) };
    let first = lines.next().transpose()?;
    let Some(first) = first.filter(|line| line.has_newline) else { return Ok(None) };
    let reason = match LedgerLine::decode(&first.text) {
        Ok((line, _)) if TeamKey::of(&line.team_id) == *key => return Ok(Some(line.team_id)),
        // A copied directory would show the rows of its team twice.
        Ok((line, _)) => format!("the line belongs to team {}, but stands in the ledger team={key}", line.team_id),
        Err(_) if first.is_last && line::is_zeroed(&first.text, 0) => return Ok(None),
        Err(e) => e.to_string(),
    };
    Err(lines.damaged(reason))
}

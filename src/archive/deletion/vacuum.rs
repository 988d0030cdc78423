//! Removes files that no ledger line names, after the grace.
//!
//! Readers, engines and copies that began before a commit continue with the files that it removed. The files
//! of a slow writer stay, too, and so do the files of an open table that was not published since. The store's clock tells all ages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::path::{ArchivePath, DataPath, SCRATCH, TABLES, ledger_of, salts_of, table_of};
use crate::model::{Dataset, GRACE_MIN, Instant, LedgerSeq, TeamId, TeamKey};
use crate::planted::{self, Bug};
use crate::store::{Listed, Store, StoreError, Unerased, UnfinishedUpload};

use super::erase::is_order;
use crate::archive::deletion::published::lines_of_table;
use crate::archive::ledger::ledger_files::{ledger_days, lines_of};
use crate::archive::ledger::line::LedgerLine;
use crate::archive::ledger::replay::{ReplayFiles, replay};
use crate::archive::{Archive, ArchiveError, Body, TeamState, TeamWriter};

/// A team's files that no line names now, and the scratch files of the store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObsoleteFiles {
    /// Older than the grace: `vacuum` removes these.
    pub expired: Vec<Listed>,
    /// Younger: somebody can still read or name these.
    pub kept: Vec<Listed>,
    /// Entries under names that Annals never gives: `vacuum` leaves these.
    pub foreign: Vec<Unerased>,
    /// Unfinished uploads older than the grace: `vacuum` aborts these.
    pub uploads: Vec<UnfinishedUpload>,
}

impl Archive {
    /// The files that [`TeamWriter::vacuum`] would remove now, and those that it would keep. Lists the files before it reads the
    /// ledger, so that a file that a commit names meanwhile counts as named.
    pub fn obsolete_files(&self, team: &TeamId) -> Result<ObsoleteFiles, ArchiveError> {
        let (key, store) = (TeamKey::of(team), self.store().as_ref());
        let grace = match planted::is(Bug::VacuumWithoutGrace) {
            true => Duration::ZERO,
            false => self.grace().max(GRACE_MIN),
        };
        let since = store.now()?.minus(grace);
        let uploads = abandoned_uploads(store, &key, since);
        let whole = || replay(store, self.id(), team).map(|replay| replay.state);
        let early = planted::is(Bug::VacuumReadsFirst).then(whole).transpose()?;
        let (mut unnamed, foreign) = files_of(store, &key)?;
        let known = || ReplayFiles::list(store, self.id(), team)?.replay_for_reading().map(|replay| replay.state);
        retain_unnamed(&mut unnamed, &early.clone().map_or_else(known, Ok)?);
        let recent = paths_within(store, &key, since, |body| body.removes)?;
        let is_young = |entry: &Listed| entry.modified >= since && !planted::is(Bug::YoungFilesRemoved);
        let is_recent = |entry: &Listed| is_young(entry) || recent.contains(&entry.path);
        if !unnamed.iter().all(is_recent) {
            // Only the whole ledger allows a removal: a snapshot may leave out files.
            retain_unnamed(&mut unnamed, &early.map_or_else(whole, Ok)?);
        }
        let (mut kept, expired): (Vec<Listed>, Vec<Listed>) = unnamed.into_iter().partition(is_recent);
        let published = published(store, &key, since, &expired)?;
        let (needed, expired) = expired.into_iter().partition(|entry| published.contains(&entry.path));
        kept.extend::<Vec<Listed>>(needed);
        Ok(ObsoleteFiles { expired, kept, foreign, uploads })
    }
}

impl TeamWriter {
    /// Removes the team's files that no line names and that are older than the grace, and old scratch files of the store.
    /// Returns the removed files, and the kept younger ones. `now` is the machine's clock.
    ///
    /// # Errors
    /// When the store fails, the ledger is invalid, or another writer committed first. Some files can be removed already.
    pub fn vacuum(&mut self, now: Instant) -> Result<ObsoleteFiles, ArchiveError> {
        let team = self.state().team_id.clone();
        let found = self.archive.obsolete_files(&team)?;
        let since = self.store().now()?.minus(self.archive.grace() * 2);
        if !self.store().has_process_locks()
            && is_unnamed_since(self.store(), &team, since, found.expired.iter())?
            && !planted::is(Bug::VacuumUnfenced)
        {
            // A writer that stalled between its files and its line can still wake. This line refuses its commit, and it reads again.
            self.begin_commit()?;
            let _ = self.commit_files(Body::default(), self.store().now()?, now)?;
        }
        remove(self.store(), &found)?;
        Ok(found)
    }
}

/// [`TeamWriter::vacuum`] for a copy, which holds the team's lock and has no commit under way.
pub fn vacuum(archive: &Archive, team: &TeamId) -> Result<ObsoleteFiles, ArchiveError> {
    let found = archive.obsolete_files(team)?;
    remove(archive.store().as_ref(), &found)?;
    Ok(found)
}

fn remove(store: &dyn Store, found: &ObsoleteFiles) -> Result<(), StoreError> {
    let paths: Vec<&str> = found.expired.iter().map(|file| file.path.as_str()).collect();
    store.remove(&paths)?;
    let Some(bucket) = store.bucket_of(TABLES) else { return Ok(()) };
    found.uploads.iter().try_for_each(|upload| bucket.abort_upload(upload))
}

/// The files, of those listed, that readers of open tables still need.
fn published(
    store: &dyn Store,
    key: &TeamKey,
    since: Instant,
    listed: &[Listed],
) -> Result<BTreeSet<String>, ArchiveError> {
    let mut followed: BTreeMap<&str, LedgerSeq> = BTreeMap::new();
    for dataset in Dataset::ALL {
        let is_of = |path: &&str| DataPath::parse(path).is_some_and(|data| data.dataset == dataset);
        let paths: Vec<&str> = listed.iter().map(|entry| entry.path.as_str()).filter(is_of).collect();
        if !paths.is_empty()
            && let Some(lines) = lines_of_table(store, dataset, since)?
        {
            let through = lines.get(key).copied().unwrap_or_default();
            followed.extend(paths.into_iter().map(|path| (path, through)));
        }
    }
    removed_after(store, key, &followed)
}

/// The files that were live at their lines, and that a later line removes. Reads the newest day files, back to the first of
/// these lines.
fn removed_after(
    store: &dyn Store,
    key: &TeamKey,
    live_at: &BTreeMap<&str, LedgerSeq>,
) -> Result<BTreeSet<String>, ArchiveError> {
    let Some(first) = live_at.values().min() else { return Ok(BTreeSet::new()) };
    // The first change of each file after its line, and whether it is the removal.
    let mut changes: BTreeMap<String, (LedgerSeq, bool)> = BTreeMap::new();
    for day in ledger_days(store, key)?.into_iter().rev() {
        let mut is_before = false;
        for (LedgerLine { seq, body, .. }, _) in lines_of(store, key, day)? {
            is_before |= seq <= *first;
            let added = body.adds.into_iter().map(|file| (file.path, false));
            let changed = added.chain(body.removes.into_iter().map(|path| (path, true)));
            for (path, is_removal) in changed.filter(|(path, _)| live_at.get(path.as_str()).is_some_and(|at| seq > *at))
            {
                let change = changes.entry(path).or_insert((seq, is_removal));
                *change = (*change).min((seq, is_removal));
            }
        }
        if is_before {
            break;
        }
    }
    Ok(changes.into_iter().filter(|(_, (_, is_removal))| *is_removal).map(|(path, _)| path).collect())
}

/// The team's uploads that began before the grace, and those of no team. A store that does not show its uploads is no reason to keep
/// files.
fn abandoned_uploads(store: &dyn Store, key: &TeamKey, since: Instant) -> Vec<UnfinishedUpload> {
    let of_team = format!("/team={key}/");
    let is_due = |upload: &UnfinishedUpload| {
        upload.since < since && (upload.path.contains(&of_team) || !upload.path.contains("/team="))
    };
    let Some(bucket) = store.bucket_of(TABLES) else { return Vec::new() };
    match bucket.unfinished_uploads() {
        Ok(found) => found.into_iter().filter(is_due).collect(),
        Err(error) => {
            tracing::warn!(%error, "cannot look for unfinished uploads");
            Vec::new()
        }
    }
}

/// Aborts the team's uploads of any age: their parts can hold what an order erases. A writer that still sends one reads again.
pub fn abort_uploads(store: &dyn Store, team: &TeamId) -> Result<(), StoreError> {
    let of_team = format!("/team={}/", TeamKey::of(team));
    let Some(bucket) = store.bucket_of(TABLES) else { return Ok(()) };
    let mut found = bucket.unfinished_uploads()?.into_iter().filter(|upload| upload.path.contains(&of_team));
    found.try_for_each(|upload| bucket.abort_upload(&upload))
}

/// The files of a team that no line names now, with the scratch files that no writer has open, and its foreign entries. Reads
/// the whole ledger.
pub fn unnamed(store: &dyn Store, of: &TeamState) -> Result<(Vec<Listed>, Vec<Unerased>), ArchiveError> {
    let (mut listed, foreign) = files_of(store, &TeamKey::of(&of.team_id))?;
    retain_unnamed(&mut listed, &replay(store, &of.archive_id, &of.team_id)?.state);
    Ok((listed, foreign))
}

/// The removed files of a team that a bucket keeps as older versions. Lists the versions first: a file that another writer uploads or
/// names meanwhile is none of them. A missing file that a line names is none either: its older version can be restored.
pub fn removed_with_versions(store: &dyn Store, of: &TeamState) -> Result<Vec<String>, ArchiveError> {
    let Some(bucket) = store.bucket_of(TABLES) else { return Ok(Vec::new()) };
    let key = TeamKey::of(&of.team_id);
    let versions = directories_of(&key).map(|directory| bucket.with_versions(&directory));
    let mut paths = versions.collect::<Result<Vec<_>, _>>()?.concat();
    if paths.is_empty() {
        return Ok(paths);
    }
    let shown: BTreeSet<String> = files_of(store, &key)?.0.into_iter().map(|entry| entry.path).collect();
    let state = replay(store, &of.archive_id, &of.team_id)?.state;
    let is_named = is_named(&state);
    let is_file =
        |path: &str| matches!(ArchivePath::parse(path), Some(ArchivePath::Data(_) | ArchivePath::Salt { .. }));
    paths.retain(|path| is_file(path) && !shown.contains(path) && !is_named(path));
    Ok(paths)
}

/// Drops the files that the lines up to `state` name.
fn retain_unnamed(listed: &mut Vec<Listed>, state: &TeamState) {
    let is_named = is_named(state);
    listed.retain(|entry| !is_named(&entry.path));
}

fn is_named(state: &TeamState) -> impl Fn(&str) -> bool {
    let salts: BTreeSet<String> = state.salt_paths().collect();
    move |path| state.files.contains_key(path) || salts.contains(path)
}

/// Whether another writer may still name one of these files: a file of the team that no line has named. A writer without a lock can
/// stall for any time between its files and its line.
pub fn may_be_named(store: &dyn Store, team: &TeamId, listed: &[Listed]) -> Result<bool, ArchiveError> {
    let since = if store.has_process_locks() { store.now()?.minus(GRACE_MIN) } else { Instant::EARLIEST };
    is_unnamed_since(store, team, since, listed.iter().filter(|entry| entry.modified >= since))
}

/// Whether no line since then has named one of these files, which is more than a scratch file.
fn is_unnamed_since<'a>(
    store: &dyn Store,
    team: &TeamId,
    since: Instant,
    files: impl Iterator<Item = &'a Listed>,
) -> Result<bool, ArchiveError> {
    let key = TeamKey::of(team);
    let mut files = files.filter(|entry| !entry.path.starts_with(SCRATCH)).peekable();
    if files.peek().is_none() {
        return Ok(false);
    }
    let named = |body: Body| body.salts.iter().map(|salt| salt.path(&key)).chain(body.removes).collect();
    let named = paths_within(store, &key, since, named)?;
    Ok(files.any(|entry| !named.contains(&entry.path)))
}

/// The directories of a team's data files and salts.
fn directories_of(key: &TeamKey) -> impl Iterator<Item = String> {
    Dataset::ALL.map(|dataset| table_of(dataset, key)).into_iter().chain([salts_of(key)])
}

/// A team's data files and salts, with all abandoned scratch files, and the entries whose names Annals never gives.
fn files_of(store: &dyn Store, key: &TeamKey) -> Result<(Vec<Listed>, Vec<Unerased>), ArchiveError> {
    let mut found = store.list(SCRATCH)?;
    // Keep the key of an erasure order that is not complete.
    found.retain(|entry| !is_order(&entry.path));
    for directory in directories_of(key) {
        found.extend(store.list(&directory)?);
    }
    // A removal of a link, or of one of a file's names, changes nothing else. But a writer can have a scratch file open.
    let (files, foreign) = found.into_iter().partition::<Vec<_>, _>(|entry| match ArchivePath::parse(&entry.path) {
        Some(path) => matches!(path, ArchivePath::Data(_) | ArchivePath::Salt { .. }),
        None => entry.path.starts_with(SCRATCH) && entry.irregular.is_none(),
    });
    let why = "Annals does not remove such an entry: remove it yourself if it holds personal data";
    let foreign = foreign.into_iter().map(|entry| Unerased { path: entry.path, why: why.to_owned() });
    Ok((files, foreign.collect()))
}

/// The paths `of` each line, from the day files that were written within the grace.
fn paths_within(
    store: &dyn Store,
    key: &TeamKey,
    since: Instant,
    of: impl Fn(Body) -> Vec<String>,
) -> Result<BTreeSet<String>, ArchiveError> {
    let mut paths = BTreeSet::new();
    for entry in store.list(&ledger_of(key))?.into_iter().filter(|entry| entry.modified >= since) {
        if let Some(ArchivePath::Ledger { day, .. }) = ArchivePath::parse(&entry.path) {
            paths.extend(lines_of(store, key, day)?.into_iter().flat_map(|(line, _)| of(line.body)));
        }
    }
    Ok(paths)
}

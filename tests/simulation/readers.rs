//! Readers beside the writer. A reader that starts from a snapshot gets the state of the whole ledger, even if
//! snapshots are damaged. A reader with stale lists sees a complete commit, the last or an earlier one.

use std::sync::Arc;

use annals::archive::{Archive, TeamState};
use annals::model::TeamKey;
use annals::model::path::ArchivePath;
use annals::model::{Digest, Instant, LedgerSeq, TeamId};
use annals::store::{Blob, FileWriter, Guard, Listed, MemoryStore, Store, StoreError, Tail};

use super::faults::{Coverage, Fault, Rare};
use super::laws::content;
use super::store::{Disk, DiskState};

pub const SNAPSHOTS: &str = "snapshots/";
const LEDGER: &str = "ledger/";
/// After how many readings the readers remember the current state of the disk.
const EARLIER_EVERY: u64 = 4;
/// Readers check one snapshot in this many, because a check takes as long as several readings of the ledger.
const SNAPSHOTS_CHECKED_EVERY: u64 = 128;
/// The prefix of a snapshot's text in its digest.
const DIGEST_DOMAIN: &str = "annals snapshot v1\n";

/// Counts the faults and states.
pub struct Notes<'a> {
    pub seed: u64,
    pub coverage: &'a mut Coverage,
    pub broken: &'a mut Vec<String>,
}

#[derive(Default)]
pub struct Readers {
    checks: u64,
    /// The disk's state some readings ago.
    earlier: Option<MemoryStore>,
    written: u64,
    /// How many of the next snapshots to check, after a fault of a snapshot.
    expected: u64,
}

/// A reader's state of a team, and the snapshot from which it started.
type Seen = Result<(TeamState, Option<LedgerSeq>), String>;

fn seen(store: impl Store + 'static, team: &TeamId) -> Seen {
    let reader = Archive::open(Arc::new(store)).and_then(|archive| archive.read(team)).map_err(|e| e.to_string())?;
    Ok((reader.state().clone(), reader.snapshot()))
}

impl Readers {
    /// A snapshot is going to be damaged.
    pub fn expect(&mut self) {
        self.expected = 2;
    }

    /// A snapshot was written. Returns whether readers check it now.
    pub fn is_due(&mut self) -> bool {
        self.written += 1;
        let is_expected = self.expected > 0;
        self.expected = self.expected.saturating_sub(1);
        is_expected || self.written.is_power_of_two() || self.written.is_multiple_of(SNAPSHOTS_CHECKED_EVERY)
    }

    /// Checks the team that owns the file `of`, or all teams: with the current disk, and with one changed view of it.
    pub fn check(&mut self, files: &MemoryStore, of: Option<&str>, notes: &mut Notes<'_>) {
        let teams = Archive::open(Arc::new(files.clone())).and_then(|archive| archive.teams()).unwrap_or_default();
        let is_asked = |team: &&TeamId| of.is_none_or(|path| path.starts_with(&format!("{}/", snapshots_of(team))));
        for team in teams.iter().filter(is_asked) {
            as_it_stands(files, team, notes);
            let Some(earlier) = &self.earlier else { continue };
            match self.checks % 3 {
                0 => restored(files, earlier, team, notes),
                1 => lagging(files, earlier, team, notes),
                _ => {
                    let other = teams.iter().find(|other| *other != team);
                    other.into_iter().for_each(|other| of_another_team(files, team, other, notes));
                }
            }
        }
        if self.checks.is_multiple_of(EARLIER_EVERY) {
            self.earlier = Some(files.snapshot());
        }
        self.checks += 1;
    }
}

/// The directory of a team's snapshots.
fn snapshots_of(team: &TeamId) -> String {
    format!("{SNAPSHOTS}team={}", TeamKey::of(team))
}

/// The numbers of a team's snapshots, and whether each is intact.
fn held(files: &MemoryStore, team: &TeamId) -> Vec<(LedgerSeq, bool)> {
    let listed = files.list(&snapshots_of(team)).unwrap();
    let held = listed.iter().filter_map(|entry| match ArchivePath::parse(&entry.path) {
        Some(ArchivePath::Snapshot { seq, .. }) => Some((seq, is_whole(files, &entry.path))),
        _ => None,
    });
    held.collect()
}

fn is_whole(files: &MemoryStore, path: &str) -> bool {
    let content = files.read(path).unwrap().to_bytes().unwrap();
    let Some((digest, text)) = content.split_at_checked(65) else { return false };
    digest == format!("{}\n", Digest::with_domain(DIGEST_DOMAIN, &[text])).as_bytes()
}

/// The files without the given ones.
fn without(files: &MemoryStore, is_left_out: impl Fn(&str) -> bool) -> MemoryStore {
    let bare = files.snapshot();
    for entry in bare.list("").unwrap().iter().filter(|entry| is_left_out(&entry.path)) {
        bare.tamper(&entry.path, None);
    }
    bare
}

/// Asserts that a reader gets the same state as a reader without snapshots.
fn agree(what: &str, team: &TeamId, seen: &Seen, whole: &Seen, notes: &mut Notes<'_>) {
    match (seen, whole) {
        (Ok(seen), Ok(whole)) if seen.0 == whole.0 => {
            if seen.1.is_some() {
                notes.coverage.rare(Rare::SnapshotRead, notes.seed);
            }
        }
        (Ok(seen), Ok(whole)) => notes.broken.push(format!(
            "I6: {what}: a reader of {team} from snapshot {:?} is at {}, but the whole ledger is at {}",
            seen.1, seen.0.seq, whole.0.seq
        )),
        (seen, whole) => {
            let err = |seen: &Seen| seen.as_ref().err().cloned();
            notes.broken.push(format!("I6: {what}: {team} cannot be read: {:?}, {:?}", err(seen), err(whole)));
        }
    }
}

fn as_it_stands(files: &MemoryStore, team: &TeamId, notes: &mut Notes<'_>) {
    let found = seen(files.clone(), team);
    let whole = seen(without(files, |path| path.starts_with(SNAPSHOTS)), team);
    agree("as it stands", team, &found, &whole, notes);
    let used = found.ok().and_then(|(_, used)| used);
    let newer = held(files, team).into_iter().filter(|(seq, _)| used.is_none_or(|used| *seq > used));
    if newer.into_iter().any(|(_, is_whole)| !is_whole) {
        notes.coverage.rare(Rare::SnapshotTorn, notes.seed);
    }
}

/// A copy of the archive whose ledger is older than its snapshots.
fn restored(files: &MemoryStore, earlier: &MemoryStore, team: &TeamId, notes: &mut Notes<'_>) {
    let bare = without(earlier, |path| path.starts_with(SNAPSHOTS));
    let whole = seen(bare.clone(), team);
    let Ok((state, ..)) = &whole else { return };
    let is_ahead = held(files, team).iter().any(|(seq, is_whole)| *is_whole && *seq > state.seq);
    if !is_ahead {
        return;
    }
    let copy = bare.snapshot();
    for entry in files.list(&snapshots_of(team)).unwrap() {
        copy.tamper(&entry.path, Some(files.read(&entry.path).unwrap().to_bytes().unwrap()));
    }
    agree("an older copy beside newer snapshots", team, &seen(copy, team), &whole, notes);
    notes.coverage.rare(Rare::SnapshotUnfit, notes.seed);
}

/// Another team's snapshots where this team's should be.
fn of_another_team(files: &MemoryStore, team: &TeamId, other: &TeamId, notes: &mut Notes<'_>) {
    let mixed = without(files, |path| path.starts_with(SNAPSHOTS));
    let whole = seen(mixed.snapshot(), team);
    let others = files.list(&snapshots_of(other)).unwrap();
    if others.is_empty() {
        return;
    }
    for entry in others {
        let path = entry.path.replacen(&snapshots_of(other), &snapshots_of(team), 1);
        mixed.tamper(&path, Some(files.read(&entry.path).unwrap().to_bytes().unwrap()));
    }
    agree("another team's snapshots", team, &seen(mixed, team), &whole, notes);
    notes.coverage.rare(Rare::SnapshotUnfit, notes.seed);
}

/// F62: lists show an earlier state of the disk.
fn lagging(files: &MemoryStore, earlier: &MemoryStore, team: &TeamId, notes: &mut Notes<'_>) {
    let ledger = format!("{LEDGER}team={}", TeamKey::of(team));
    let listed = earlier.list(&ledger).unwrap();
    if listed.is_empty() || listed == files.list(&ledger).unwrap() {
        return;
    }
    let is_hidden = |path: &str| path.starts_with(&ledger) && listed.iter().all(|entry| entry.path != path);
    let whole = seen(without(files, |path| path.starts_with(SNAPSHOTS) || is_hidden(path)), team);
    let found = seen(Lagging { listed: earlier.snapshot(), files: files.clone() }, team);
    agree("a list that lags", team, &found, &whole, notes);
    notes.coverage.fault(Fault::StaleList, notes.seed);
}

/// A disk whose lists come from an earlier time.
struct Lagging {
    listed: MemoryStore,
    files: MemoryStore,
}

impl Store for Lagging {
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        self.files.create()
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        self.files.read(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        self.listed.list(directory)
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        self.files.remove(paths)
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        self.files.append(path, tail, bytes)
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.files.create_new(path, bytes)
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        self.files.lock(name)
    }

    fn now(&self) -> Result<Instant, StoreError> {
        self.files.now()
    }
}

impl Disk {
    /// Takes in the ledger lines of a writer without faults.
    pub fn follow(&self, files: &MemoryStore) {
        let mut inner = self.inner();
        let DiskState { laws, broken, acknowledged, .. } = &mut *inner;
        for listed in files.list("ledger").expect("memory can be listed") {
            laws.follow(files, &listed.path, broken);
            let content = content(files, &listed.path).unwrap_or_default();
            let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            acknowledged.insert(listed.path, content.slice(..whole));
        }
    }

    /// Lets the readers read while the writer works. `of` is a path of the only team to read; `None` reads all teams.
    pub fn check_readers(&self, files: &MemoryStore, of: Option<&str>) {
        let mut inner = self.inner();
        let DiskState { readers, coverage, broken, .. } = &mut *inner;
        readers.check(files, of, &mut Notes { seed: self.plan.seed, coverage, broken });
    }
}

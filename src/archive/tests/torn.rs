//! The torn-store model: a power loss after every step that changes the disk. Every unsynced write is kept, dropped, cut,
//! zero-filled or torn, and every unsynced rename is kept or lost; then a reader, recovery, and the laws.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use parking_lot::Mutex;

use super::super::{Copy, FaultCode, Signer, VerifyOptions, verify};
use super::torn_disk::{DiskState, Files, Lie, TornDisk, store_of};
use super::*;
use crate::model::GRACE_LOCAL;

/// The number of acknowledged commits, and the content of the disk.
type State = (usize, Files);

/// The seed of the drawn states.
const SEED: u64 = 20_261_122;
/// Maximum number of rounds, and the number of states of each moment in the later rounds.
const ROUNDS_MAX: usize = 1_000;
const DRAWS_A_ROUND: usize = 8;
/// Number of tried states. `ANNALS_TORN_STATES` sets another number; the long run tries ten times as many.
const STATES: usize = 5_000;
const LONG_RUN: usize = 10;
/// One in this many states also gets a torn recovery.
const RECOVERIES_EVERY: usize = 7;
const RECOVERY_STATES: usize = 1_000;
const COPY_STATES: usize = 1_000;
const VACUUM_ROUNDS: usize = 20;
/// After one in this many states, the rest of the history is committed.
const FINISHES_EVERY: usize = 20;
/// A lying disk must be detected within this many states.
const LIE_STATES_MAX: usize = 1_000;

fn signer() -> Arc<Signer> {
    Arc::new(signing::signer(7))
}

/// The whole history, signed, on a disk that records its state at every step.
fn history_on(disk: &TornDisk) {
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = open(&store).with_signer(Some(signer()));
    let mut writer = writer(&archive);
    for draft in history() {
        let draft = with_sessions(&mut writer, draft).unwrap();
        let _ = commit(&mut writer, draft).unwrap();
        disk.acknowledge();
    }
}

/// Checks the laws after any power loss; the error names the broken law.
fn check_state((acknowledged, files): &State, finishes: bool) -> Result<(), String> {
    let store: Arc<dyn Store> = Arc::new(store_of(files));
    let fail =
        |what: &str, why: &dyn std::fmt::Display| Err(format!("{acknowledged} acknowledged commits: {what}: {why}"));
    let archive = match Archive::open_or_create(Arc::clone(&store), || "archive-1".to_owned()) {
        Ok(archive) => archive.with_signer(Some(signer())),
        Err(e) => return fail("opening", &e),
    };
    let before = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
    if let Some(fault) = before.faults.iter().find(|fault| fault.code != FaultCode::TornTail) {
        return fail("verify before recovery", &format!("{fault:?}"));
    }
    match archive.read(&team()) {
        Ok(reader) if reader.state().seq.0 < *acknowledged as u64 => {
            return fail("a reader", &format!("sees {} commits", reader.state().seq));
        }
        Ok(_) => {}
        Err(e) => return fail("a reader", &e),
    }
    let mut writer = match archive.writer(&team()) {
        Ok(writer) => writer,
        Err(e) => return fail("recovery", &e),
    };
    let done = usize::try_from(writer.state().seq.0).unwrap();
    if done != *acknowledged && done != acknowledged + 1 {
        return fail("recovery", &format!("{done} commits stand"));
    }
    if ids_in(&archive) != ids_after(done) || sessions_in(&archive) != ids_after(done) {
        return fail("recovery", &"rows are lost or doubled");
    }
    if quarantined_in(&archive) != quarantined_after(done) {
        return fail("recovery", &"quarantined rows are lost or doubled");
    }
    check_clean(&archive)?;
    if finishes {
        for step in done..history().len() {
            let draft = with_sessions(&mut writer, history().swap_remove(step)).map_err(|e| e.to_string())?;
            let _ = commit(&mut writer, draft).map_err(|e| format!("going on: {e}"))?;
        }
        if ids_in(&archive) != ids_after(history().len()) {
            return fail("going on", &"rows are lost or doubled");
        }
        check_clean(&archive)?;
    }
    Ok(())
}

/// Checks that there is no fault and no unnamed file, and that every line is signed.
fn check_clean(archive: &Archive) -> Result<(), String> {
    let options = VerifyOptions { keys: vec![signer().key.public().clone()], ..VerifyOptions::default() };
    let report = verify(archive.store().as_ref(), &options).unwrap();
    let is_signed = |team: &super::super::TeamReport| team.signed.as_ref().is_some_and(|s| s.seq == team.last_seq);
    let unsigned = report.teams.iter().find(|team| team.last_seq.0 > 0 && !is_signed(team));
    match (report.faults.first(), unsigned) {
        (None, None) => Ok(()),
        (fault, unsigned) => Err(format!("after recovery: {fault:?}, {unsigned:?}")),
    }
}

/// The number of states, and the first that breaks a law. Two threads share the states, which are never all in memory.
fn check_all(states: impl Iterator<Item = State> + Send) -> (usize, Option<String>) {
    let (states, is_over) = (Mutex::new(states.enumerate()), AtomicBool::new(false));
    let next = || {
        let mut states = states.lock();
        if is_over.load(Ordering::SeqCst) { None } else { states.next() }
    };
    let check = || {
        let mut last = 0;
        while let Some((at, state)) = next() {
            last = at + 1;
            if let Err(why) = check_state(&state, at % FINISHES_EVERY == 0) {
                is_over.store(true, Ordering::SeqCst);
                return (last, Some(format!("state {at}: {why}")));
            }
        }
        (last, None)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(check);
        let (mine, broken) = check();
        let (theirs, also_broken) = other.join().unwrap();
        (mine.max(theirs), broken.or(also_broken))
    })
}

/// Remembers states, and tells whether a state is new.
#[derive(Default)]
struct SeenStates(HashSet<u64>);

impl SeenStates {
    fn is_new(&mut self, acknowledged: usize, files: &Files) -> bool {
        let mut hash = DefaultHasher::new();
        (acknowledged, files).hash(&mut hash);
        self.0.insert(hash.finish())
    }
}

/// Draws states, each once.
struct Drawing {
    met: SeenStates,
    chance: Rng,
}

impl Drawing {
    fn new() -> Self {
        Self { met: SeenStates::default(), chance: Rng::with_seed(SEED) }
    }

    /// New possible states after a power loss at this moment.
    fn states_of(&mut self, moment: &DiskState, round: usize) -> Vec<State> {
        let draws = if moment.is_settled() { 0 } else { DRAWS_A_ROUND };
        let mut found: Vec<Files> = (0..draws).map(|_| moment.draw(&mut self.chance)).collect();
        if round == 0 {
            found.extend(moment.alike());
        }
        found.retain(|files| self.met.is_new(moment.acknowledged, files));
        found.into_iter().map(|files| (moment.acknowledged, files)).collect()
    }
}

/// States of all these moments: a few of each, then a few more.
fn states_of(moments: Vec<DiskState>) -> impl Iterator<Item = State> + Send {
    let mut drawing = Drawing::new();
    let count = moments.len();
    let rounds = (0..ROUNDS_MAX).flat_map(move |round| (0..count).map(move |at| (round, at)));
    rounds.flat_map(move |(round, at)| drawing.states_of(&moments[at], round))
}

fn times(states: usize) -> usize {
    let long = if std::env::var_os("ANNALS_LONG").is_some() { LONG_RUN } else { 1 };
    std::env::var("ANNALS_TORN_STATES").ok().and_then(|text| text.parse().ok()).unwrap_or(states * long)
}

/// The moments of the whole history.
fn history_moments(lie: Lie) -> Vec<DiskState> {
    let disk = TornDisk::new(&BTreeMap::new(), 0, lie);
    history_on(&disk);
    disk.moments()
}

/// The moments of the recovery from a state.
fn recovery_of((acknowledged, files): &State) -> Vec<DiskState> {
    let disk = TornDisk::new(files, *acknowledged, Lie::None);
    let archive = open(&(Arc::new(disk.clone()) as Arc<dyn Store>)).with_signer(Some(signer()));
    drop(writer(&archive));
    disk.moments()
}

#[test]
fn no_power_loss_loses_or_doubles_a_row() {
    let wanted = times(STATES);
    let (count, broken) = check_all(states_of(history_moments(Lie::None)).take(wanted));
    assert_eq!(broken, None);
    assert_eq!(count, wanted, "there are no more states");
}

#[test]
fn no_power_loss_in_recovery_loses_or_doubles_a_row() {
    let (wanted, mut drawing) = (times(RECOVERY_STATES), Drawing::new());
    let torn = states_of(history_moments(Lie::None)).step_by(RECOVERIES_EVERY).flat_map(move |state| {
        recovery_of(&state).iter().flat_map(|moment| drawing.states_of(moment, 0)).collect::<Vec<_>>()
    });
    let (count, broken) = check_all(torn.take(wanted));
    assert_eq!(broken, None);
    assert_eq!(count, wanted, "there are no more states");
}

/// The vacuum removes the files that the history replaced.
#[test]
fn no_power_loss_during_a_vacuum_loses_a_row() {
    let whole = TornDisk::new(&BTreeMap::new(), 0, Lie::None);
    history_on(&whole);
    let store: Arc<dyn Store> = Arc::new(whole);
    let content = |path: &String| store.read(path).unwrap().to_bytes().unwrap();
    let files: Files = files_under(&store, "").into_iter().map(|path| (path.clone(), content(&path))).collect();
    let mut disk = TornDisk::new(&files, history().len(), Lie::None);
    disk.now = now().plus(Duration::from_secs(30 * 86_400));
    let archive = open(&(Arc::new(disk.clone()) as Arc<dyn Store>)).with_signer(Some(signer()));
    let mut writer = writer(&archive);
    let _ = disk.moments();
    let removed = writer.vacuum().unwrap().expired;
    assert!(removed.len() >= 3, "{removed:?}");
    let (moments, mut drawing) = (disk.moments(), Drawing::new());
    let states = (0..VACUUM_ROUNDS)
        .flat_map(move |round| moments.iter().flat_map(|moment| drawing.states_of(moment, round)).collect::<Vec<_>>());
    let (count, broken) = check_all(states);
    assert_eq!(broken, None);
    assert!(count > removed.len(), "only {count} states");
}

/// The ledgers' files with their content.
fn ledgers(store: &Arc<dyn Store>) -> Vec<(String, Bytes)> {
    let content = |path: &String| store.read(path).unwrap().to_bytes().unwrap();
    files_under(store, "ledger").into_iter().map(|path| (path.clone(), content(&path))).collect()
}

#[test]
fn a_copy_continues_after_any_power_loss_of_its_target() {
    let source: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let from = open(&source).with_signer(Some(signer()));
    let mut writer = writer(&from);
    for (draft, step) in history().into_iter().zip(0..) {
        let draft = with_sessions(&mut writer, draft).unwrap();
        let _ = writer.commit(draft, now().plus(Duration::from_secs(86_400) * (step / 2))).unwrap();
    }
    let copy = |to: &Arc<dyn Store>| Copy::new(from.clone(), Arc::clone(to), GRACE_LOCAL)?.team(&team(), &|_| {});
    let disk = TornDisk::new(&BTreeMap::new(), 0, Lie::None);
    let target: Arc<dyn Store> = Arc::new(disk.clone());
    let _ = Copy::new(from.clone(), Arc::clone(&target), GRACE_LOCAL).unwrap();
    // Real stores create the manifest as a whole.
    let _ = disk.moments();
    let _ = copy(&target).unwrap();
    let mut continued = 0;
    for (_, files) in states_of(disk.moments()).take(COPY_STATES) {
        let target: Arc<dyn Store> = Arc::new(store_of(&files));
        let copied = copy(&target).unwrap_or_else(|e| panic!("state {continued}: {e}"));
        continued += u64::from(copied.lines < writer.state().seq.0);
        assert!(ledgers(&target) == ledgers(&source));
        check_clean(&open(&target)).unwrap();
        assert_eq!(copy(&target).unwrap().lines, 0);
    }
    assert!(continued > 100, "{continued} copies had a beginning");
}

#[test]
fn a_disk_that_lies_about_a_sync_is_detected() {
    for lie in [Lie::FileSync, Lie::DirectorySync, Lie::LedgerSync] {
        // A lying disk accumulates unsynced data, so the latest moments show it best.
        let moments = history_moments(lie).into_iter().rev().collect();
        let (count, broken) = check_all(states_of(moments).take(LIE_STATES_MAX));
        assert!(broken.is_some(), "{lie:?}: no law was broken in {count} states");
    }
}

//! The torn-store model: a power loss after every step that changes the disk. Every unsynced write is kept, dropped, cut,
//! zero-filled or torn, and every unsynced rename is kept or lost; then a reader, recovery, and the laws.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
/// The step of the history whose writer stalls. It replaces files of the steps before.
const STALLED_STEP: usize = 2;
const STALL_STATES: usize = 1_000;
/// After one in this many states, the rest of the history is committed.
const FINISHES_EVERY: usize = 20;
/// A lying disk must be detected within this many states.
const LIE_STATES_MAX: usize = 1_000;

fn signer() -> Arc<Signer> {
    Arc::new(signing::signer(7))
}

fn signed(disk: &TornDisk) -> Archive {
    open(&(Arc::new(disk.clone()) as Arc<dyn Store>)).with_signer(Some(signer()))
}

/// Commits the next steps of the history, on a disk that records its state at every step.
fn commit_until(steps: usize, writer: &mut TeamWriter, disk: &TornDisk) {
    for step in usize::try_from(writer.state().seq.0).unwrap()..steps {
        let draft = with_sessions(writer, history().swap_remove(step)).unwrap();
        let _ = commit(writer, draft).unwrap();
        disk.acknowledge();
    }
}

/// The whole history, signed.
fn history_on(disk: &TornDisk) {
    commit_until(history().len(), &mut writer(&signed(disk)), disk);
}

/// The law that a fault of `verify` breaks.
fn law_of(code: FaultCode) -> &'static str {
    match code {
        FaultCode::FileMissing | FaultCode::FileHash | FaultCode::FileSize | FaultCode::Salt => "S1",
        FaultCode::SeqGap | FaultCode::ChainBreak => "S2",
        _ => "I6",
    }
}

/// Checks the laws after any power loss; the error begins with the broken law.
fn check_state((acknowledged, files): &State, finishes: bool) -> Result<(), String> {
    let store: Arc<dyn Store> = Arc::new(store_of(files));
    let broken = |law: &str, what: &str, why: &dyn std::fmt::Display| {
        Err(format!("{law}: {acknowledged} acknowledged commits: {what}: {why}"))
    };
    let fail = |what: &str, why: &dyn std::fmt::Display| broken("I6", what, why);
    let archive = match Archive::open_or_create(Arc::clone(&store), || "archive-1".to_owned()) {
        Ok(archive) => archive.with_signer(Some(signer())),
        Err(e) => return fail("opening", &e),
    };
    let before = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
    if let Some(fault) = before.faults.iter().find(|fault| fault.code != FaultCode::TornTail) {
        return broken(law_of(fault.code), "verify before recovery", &format!("{fault:?}"));
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
        return broken("I2 or I4", "recovery", &"rows are lost or doubled");
    }
    if quarantined_in(&archive) != quarantined_after(done) {
        return broken("I2 or I4", "recovery", &"quarantined rows are lost or doubled");
    }
    check_clean(&archive)?;
    if finishes {
        for step in done..history().len() {
            let draft = with_sessions(&mut writer, history().swap_remove(step)).map_err(|e| e.to_string())?;
            let _ = commit(&mut writer, draft).map_err(|e| format!("going on: {e}"))?;
        }
        if ids_in(&archive) != ids_after(history().len()) {
            return broken("I2 or I4", "going on", &"rows are lost or doubled");
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
        (fault, unsigned) => {
            let law = fault.map_or("I6", |fault| law_of(fault.code));
            Err(format!("{law}: after recovery: {fault:?}, {unsigned:?}"))
        }
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
    drop(writer(&signed(&disk)));
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
    let disk = TornDisk::new(&files, history().len(), Lie::None);
    disk.set_now(now().plus(Duration::from_secs(30 * 86_400)));
    let mut writer = writer(&signed(&disk));
    let _ = disk.moments();
    let removed = writer.vacuum(now()).unwrap().expired;
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

/// What a stall left behind: the disk's moments, the answer to the stalled commit, and the number of vacuumed files.
struct Stall {
    moments: Vec<DiskState>,
    answer: Result<Committed, ArchiveError>,
    vacuumed: usize,
}

/// A writer stalls for days between its files and its line. Meanwhile another writer commits `ahead` steps and vacuums. Then the
/// stalled writer opens the team again and commits the rest of the history.
fn stall(ahead: usize) -> Stall {
    let disk = TornDisk::new(&BTreeMap::new(), 0, Lie::None);
    let archive = signed(&disk);
    let mut late = writer(&archive);
    commit_until(STALLED_STEP, &mut late, &disk);
    let draft = with_sessions(&mut late, history().swap_remove(STALLED_STEP)).unwrap();
    let _ = disk.moments();
    let (other, vacuumed) = (disk.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&vacuumed);
    disk.stall_before_append(Box::new(move || {
        let day = Duration::from_secs(86_400);
        other.set_now(now().plus(day));
        let mut owner = writer(&signed(&other));
        commit_until(STALLED_STEP + ahead, &mut owner, &other);
        other.set_now(now().plus(day * 3));
        count.store(owner.vacuum(now()).unwrap().expired.len(), Ordering::SeqCst);
    }));
    let answer = commit(&mut late, draft);
    drop(late);
    commit_until(history().len(), &mut writer(&archive), &disk);
    Stall { moments: disk.moments(), answer, vacuumed: vacuumed.load(Ordering::SeqCst) }
}

/// F43: power is lost at each step of the stalled commit, of the other writer, of its vacuum, and after the stalled writer woke.
#[test]
fn no_power_loss_around_a_stalled_writer_loses_or_doubles_a_row() {
    let wanted = times(STALL_STATES);
    for ahead in [1, 3] {
        let Stall { moments, answer, vacuumed } = stall(ahead);
        assert!(matches!(answer, Err(ArchiveError::Fenced { .. })), "{ahead} steps ahead: {answer:?}");
        // The files of the stalled commit, and those that the other writer replaced.
        assert!(vacuumed >= 6, "{ahead} steps ahead: {vacuumed} files");
        let (count, broken) = check_all(states_of(moments).take(wanted));
        assert_eq!((count, broken), (wanted, None), "{ahead} steps ahead");
    }
}

/// Whether this law catches the bug that was planted in these moments. The latest moments show it best: a lying disk accumulates
/// unsynced data.
fn is_caught_by(law: &str, moments: Vec<DiskState>) -> bool {
    let mut states = states_of(moments.into_iter().rev().collect()).take(LIE_STATES_MAX);
    states.any(|state| check_state(&state, false).is_err_and(|why| why.starts_with(&format!("{law}:"))))
}

/// S1: the files are durable before their line. I6: an acknowledged line stays.
#[test]
fn a_disk_that_lies_about_a_sync_breaks_the_law_of_that_sync() {
    for (lie, law) in [(Lie::FileSync, "S1"), (Lie::DirectorySync, "S1"), (Lie::LedgerSync, "I6")] {
        assert!(is_caught_by(law, history_moments(lie)), "{lie:?}: {law} was not broken in {LIE_STATES_MAX} states");
    }
}

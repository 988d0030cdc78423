//! Real kills: a child process commits the history on a real disk and is killed before, within or after every operation that
//! changes the disk, and at random moments, also during recovery; then a reader, recovery, and the laws. Other children stop
//! there for a while, as a suspended process does, beside a second process.
//!
//! The child is this test binary, started at [`child`]. A store that exists only in tests counts the operations.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};

use super::super::{Signer, VerifyOptions, verify};
use super::*;
use crate::store::{FileWriter, Guard, LocalStore, StoreError, Tail, pass_on};

#[path = "../../../tests/common/age.rs"]
mod age;

const ROOT: &str = "ANNALS_TEST_KILL_ROOT";
const AT: &str = "ANNALS_TEST_KILL_AT";
/// The child stops at its step, instead of dying.
const STOPS: &str = "ANNALS_TEST_STOPS";
/// The child takes no locks: its disk is shared with machines that do not see them.
const WITHOUT_LOCKS: &str = "ANNALS_TEST_WITHOUT_LOCKS";
/// The child commits this many steps, and vacuums.
const AHEAD: &str = "ANNALS_TEST_AHEAD";
/// Number of kills at random moments; `ANNALS_LONG=1` asks for many more.
const RANDOM_KILLS: u64 = 25;
const RANDOM_KILLS_LONG: u64 = 1_000;
/// The long run kills at each step. Other runs kill at one in this many, a prime, so that every kind of operation is hit.
const STEPS_EVERY: usize = 11;
/// The same for the steps at which a writer stops. Four kinds of stops alternate.
const STOPS_EVERY: usize = 13;
/// The steps of the history before a writer stops, and those that the second process commits meanwhile.
const STEPS_BEFORE: usize = 2;
const STEPS_AHEAD: usize = 2;
const NEVER: u64 = u64::MAX;

/// A local disk whose process dies or stops at a chosen step; each changing operation has two steps: before it and after it.
#[derive(Clone)]
struct KillingStore {
    inner: LocalStore,
    steps: Arc<AtomicU64>,
    at: u64,
    signal: Signal,
    has_locks: bool,
}

impl KillingStore {
    fn step(&self) {
        if self.steps.fetch_add(1, Ordering::SeqCst) == self.at {
            kill_process(getpid(), self.signal).unwrap();
            assert!(self.signal == Signal::STOP, "BUG: nobody outlives a kill");
            // The signal can reach another thread first, and this one would go on. The parent closes the input to wake it.
            let _ = std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
    }

    fn around<T>(&self, act: impl FnOnce() -> T) -> T {
        self.step();
        let answer = act();
        self.step();
        answer
    }
}

impl Store for KillingStore {
    pass_on! { read list create_new now }

    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        let inner = self.around(|| self.inner.create())?;
        Ok(Box::new(KillingWriter { store: self.clone(), inner }))
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        self.around(|| self.inner.remove(paths))
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        // The first half is written before the rest, as when the process dies within the write.
        let half = bytes.len() / 2;
        if self.signal == Signal::KILL && self.steps.load(Ordering::SeqCst) == self.at && half > 0 {
            let _ = self.inner.append(path, tail, &bytes[..half]);
        }
        self.around(|| self.inner.append(path, tail, bytes))
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        self.around(|| if self.has_locks { self.inner.lock(name) } else { Ok(Box::new(()) as Box<dyn Guard>) })
    }
}

struct KillingWriter {
    store: KillingStore,
    inner: Box<dyn FileWriter>,
}

impl std::io::Write for KillingWriter {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let Self { store, inner } = self;
        // A write can write a part only.
        store.around(|| inner.write(&buffer[..buffer.len().div_ceil(2)]))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl FileWriter for KillingWriter {
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError> {
        let Self { store, inner } = *self;
        store.around(|| inner.finish(path))
    }
}

fn signer() -> Arc<Signer> {
    Arc::new(signing::signer(4))
}

fn store_of_child(root: std::ffi::OsString) -> KillingStore {
    let is_set = |name| std::env::var_os(name).is_some();
    KillingStore {
        inner: LocalStore::new(root),
        steps: Arc::default(),
        at: std::env::var(AT).unwrap().parse().unwrap(),
        signal: if is_set(STOPS) { Signal::STOP } else { Signal::KILL },
        has_locks: !is_set(WITHOUT_LOCKS),
    }
}

/// The child: commits the rest of the history, and reports each commit on its standard output.
#[test]
fn child() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let store = store_of_child(root);
    let said = |text: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").unwrap();
        out.flush().unwrap();
    };
    let archive = open(&(Arc::new(store.clone()) as Arc<dyn Store>)).with_signer(Some(signer()));
    let mut writer = match archive.writer(&team()) {
        Err(ArchiveError::Locked { .. }) => return said("locked".to_owned()),
        opened => opened.unwrap(),
    };
    let done = usize::try_from(writer.state().seq.0).unwrap();
    let ahead = std::env::var(AHEAD).ok().map(|ahead| ahead.parse::<usize>().unwrap());
    let until = ahead.map_or(history().len(), |ahead| history().len().min(done + ahead));
    for step in done..until {
        let draft = with_sessions(&mut writer, history().swap_remove(step)).unwrap();
        match commit(&mut writer, draft) {
            Err(ArchiveError::Fenced { .. }) => return said("fenced".to_owned()),
            committed => drop(committed.unwrap()),
        }
        said(format!("committed {}", step + 1));
    }
    if ahead.is_some() {
        // The other process has stopped for days.
        ["tables", "ledger"].iter().for_each(|directory| age::age(&store.inner.root().join(directory)));
        let _ = writer.vacuum(now()).unwrap();
    }
    said(format!("steps {}", store.steps.load(Ordering::SeqCst)));
}

fn command(root: &Path, at: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "archive::tests::kills::child", "--nocapture", "--test-threads=1"]);
    command.env(ROOT, root).env(AT, at.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn start(root: &Path, at: u64) -> Child {
    command(root, at).spawn().unwrap()
}

/// What a child reported: its last commit, its number of steps, and why it did not commit.
#[derive(Debug, Default)]
struct Said {
    committed: usize,
    steps: Option<u64>,
    is_locked: bool,
    is_fenced: bool,
}

/// Waits for a child.
fn heard(mut child: Child) -> (ExitStatus, Said) {
    let mut said = Said::default();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The first line of a test's output follows its name.
        if let Some((_, number)) = line.split_once("committed ") {
            said.committed = number.parse().unwrap();
        } else if let Some((_, number)) = line.split_once("steps ") {
            said.steps = number.parse().ok();
        }
        said.is_locked |= line.ends_with("locked");
        said.is_fenced |= line.ends_with("fenced");
    }
    (child.wait().unwrap(), said)
}

/// Waits for a child: its exit status, its last reported commit, and its number of steps.
fn outcome(child: Child) -> (ExitStatus, usize, Option<u64>) {
    let (status, said) = heard(child);
    (status, said.committed, said.steps)
}

/// Checks the disk of a killed process, where a reader sees `standing` commits.
fn check_left(root: &Path, standing: usize, case: &str) {
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(root));
    let archive = open(&store).with_signer(Some(signer()));
    assert_eq!(ids_in(&archive), ids_after(standing), "{case}: a reader");
    let writer = archive.writer(&team()).unwrap_or_else(|e| panic!("{case}: recovery: {e}"));
    let done = usize::try_from(writer.state().seq.0).unwrap();
    assert!(done == standing || done == standing + 1, "{case}: {done} commits stand");
    assert_eq!((ids_in(&archive), sessions_in(&archive)), (ids_after(done), ids_after(done)), "{case}");
    assert_eq!(quarantined_in(&archive), quarantined_after(done), "{case}");
    check_clean(&store, case);
}

fn check_clean(store: &Arc<dyn Store>, case: &str) {
    let options = VerifyOptions { keys: vec![signer().key.public().clone()], ..VerifyOptions::default() };
    let report = verify(store.as_ref(), &options).unwrap();
    assert!(report.is_clean(), "{case}: {:?}", report.faults);
}

/// Lets a child finish the history, whose result must be the same as without a kill.
fn finish(root: &Path, case: &str) {
    let (status, _, steps) = outcome(start(root, NEVER));
    assert!(status.success() && steps.is_some(), "{case}: {status}");
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(root));
    assert_eq!(ids_in(&open(&store)), ids_after(history().len()), "{case}: at the end");
    check_clean(&store, case);
}

#[test]
fn a_kill_at_any_step_loses_and_doubles_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (status, committed, steps) = outcome(start(&directory.path().join("whole"), NEVER));
    assert!(status.success() && committed == history().len(), "{status}");
    let steps = steps.unwrap();
    assert!(steps > 200, "{steps} steps: too few kills");
    let every = if std::env::var_os("ANNALS_LONG").is_some() { 1 } else { STEPS_EVERY };
    let tried: Vec<u64> = (0..steps).step_by(every).collect();
    let run = |part: usize| {
        let mut killed = 0;
        for (number, at) in tried.iter().copied().enumerate().skip(part).step_by(2) {
            let (root, case) = (directory.path().join(at.to_string()), format!("killed at step {at} of {steps}"));
            let (status, mut acknowledged, _) = outcome(start(&root, at));
            killed += u64::from(!status.success());
            // The second hit: during recovery or soon after.
            if number % 4 < 2 {
                let (_, more, _) = outcome(start(&root, at % 23));
                acknowledged = acknowledged.max(more);
            }
            let seen = standing(&root);
            assert!(seen >= acknowledged, "{case}: {seen} commits are visible, {acknowledged} were acknowledged");
            check_left(&root, seen, &case);
            if number % 8 < 2 {
                finish(&root, &case);
            }
            std::fs::remove_dir_all(&root).unwrap();
        }
        killed
    };
    let killed = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        run(0) + other.join().unwrap()
    });
    // The threads of a commit can run their steps in another order, and so end a step earlier.
    assert!(killed + 4 >= tried.len() as u64, "{killed} of {} were killed", tried.len());
}

/// The number of lines in the ledger, reported or not.
fn standing(root: &Path) -> usize {
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(root));
    usize::try_from(open(&store).read(&team()).unwrap().state().seq.0).unwrap()
}

#[test]
fn random_kills_do_not_prevent_the_history() {
    let kills = if std::env::var_os("ANNALS_LONG").is_some() { RANDOM_KILLS_LONG } else { RANDOM_KILLS };
    let directory = tempfile::tempdir().unwrap();
    let mut chance = fastrand::Rng::with_seed(20_261_121);
    let (mut killed, mut round) = (0, 0);
    while killed < kills {
        let root = directory.path().join(round.to_string());
        let mut acknowledged = 0;
        for again in 0..6 {
            let mut child = start(&root, NEVER);
            let line = chance.usize(..4);
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let mut text = String::new();
            // Kill after some of the reports: the work decides the moment, not the clock.
            for _ in 0..line {
                text.clear();
                let _ = out.read_line(&mut text).unwrap();
                if let Some((_, number)) = text.trim_end().split_once("committed ") {
                    acknowledged = acknowledged.max(number.parse().unwrap());
                }
            }
            killed += u64::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            let _ = child.wait().unwrap();
            for line in out.lines().map_while(Result::ok) {
                if let Some((_, number)) = line.split_once("committed ") {
                    acknowledged = acknowledged.max(number.parse().unwrap());
                }
            }
            let case = format!("round {round}, kill {again}");
            let seen = standing(&root);
            assert!(seen + 1 >= acknowledged, "{case}: {seen} commits are visible, {acknowledged} were acknowledged");
        }
        finish(&root, &format!("round {round}"));
        round += 1;
    }
}

/// Waits until the child has stopped. Returns whether it did, or has ended instead.
fn has_stopped(child: &Child) -> bool {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(Pid::from_child(child)), options));
    status.unwrap().unwrap().stopped()
}

/// F43: a process stops at a place of a commit, as when its machine is suspended. Meanwhile a second process opens the team: a lock
/// refuses it; without locks, it commits, and vacuums after days. Then the first one wakes or is killed, and a third one goes on.
#[test]
fn a_writer_that_stops_loses_and_doubles_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let begun = |name: &str| {
        let root = directory.path().join(name);
        let archive = open(&(Arc::new(LocalStore::new(&root)) as Arc<dyn Store>)).with_signer(Some(signer()));
        let mut writer = writer(&archive);
        for draft in history().into_iter().take(STEPS_BEFORE) {
            let draft = with_sessions(&mut writer, draft).unwrap();
            let _ = commit(&mut writer, draft).unwrap();
        }
        root
    };
    let steps = outcome(start(&begun("whole"), NEVER)).2.unwrap();
    let every = if std::env::var_os("ANNALS_LONG").is_some() { 1 } else { STOPS_EVERY };
    let (mut stopped, mut refused, mut fenced) = (0, 0, 0);
    for (number, at) in (0..steps).step_by(every).enumerate() {
        let (has_locks, wakes) = (number % 2 == 0, number / 2 % 2 == 0);
        let case = format!("stopped at step {at} of {steps}, locks {has_locks}, wakes {wakes}");
        let root = begun(&at.to_string());
        let command = |at: u64| {
            let mut command = command(&root, at);
            if !has_locks {
                command.env(WITHOUT_LOCKS, "1");
            }
            command
        };
        let mut first = command(at).env(STOPS, "1").stdin(Stdio::piped()).spawn().unwrap();
        let is_stopped = has_stopped(&first);
        stopped += u64::from(is_stopped);
        let second = command(NEVER).env(AHEAD, STEPS_AHEAD.to_string()).spawn().unwrap();
        let (status, second) = heard(second);
        let case = format!("{case}: the first writer stopped: {is_stopped}; the second one: {status}, {second:?}");
        // At its first step, the first process has no lock yet.
        assert!(!has_locks || at == 0 || second.is_locked, "{case}: a second writer beside a lock");
        assert!(second.is_locked || second.steps.is_some(), "{case}: the second writer did not finish");
        refused += u64::from(second.is_locked);
        match wakes {
            true => {
                kill_process(Pid::from_child(&first), Signal::CONT).unwrap();
                drop(first.stdin.take());
            }
            false => first.kill().unwrap(),
        }
        let (_, first) = heard(first);
        fenced += u64::from(first.is_fenced);
        let (seen, acknowledged) = (standing(&root), first.committed.max(second.committed));
        assert!(seen >= acknowledged, "{case}: {seen} commits are visible, {acknowledged} were acknowledged");
        check_left(&root, seen, &case);
        finish(&root, &case);
        std::fs::remove_dir_all(&root).unwrap();
    }
    assert!(stopped > 10 && refused > 3 && fenced > 0, "{stopped} stopped, {refused} refused, {fenced} fenced");
}

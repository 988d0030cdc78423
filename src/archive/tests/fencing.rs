//! Late writers: stalled for hours, overtaken by another writer, or without an answer to their append.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::scope;

use parking_lot::Mutex;

use crate::store::{FileWriter, Guard, MemoryStore, StoreError, Tail, ministack, pass_on};

use super::super::{CommitSummary, FaultCode, VerifyOptions, verify};
use super::*;
use crate::archive::deletion::erase::Subject;
use crate::planted::{Bug, CURRENT};

/// The answer to an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Arrives,
    /// The append takes effect, but its answer is lost.
    Lost,
}

/// A store without locks, like an object store.
struct Lockless {
    inner: Arc<dyn Store>,
    /// How far its clock is ahead of the inner store's.
    ahead: Duration,
    /// Runs before each file.
    before_file: Box<dyn Fn() + Send + Sync>,
    answer: Answer,
    files: AtomicUsize,
    /// Runs once, after the files of a commit and before its line.
    before_append: Mutex<Option<BeforeAppend>>,
}

type BeforeAppend = Box<dyn FnOnce() + Send>;

impl Lockless {
    fn of(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            ahead: Duration::ZERO,
            before_file: Box::new(|| ()),
            answer: Answer::Arrives,
            files: AtomicUsize::new(0),
            before_append: Mutex::default(),
        }
    }

    /// Each file takes the time of `pause`.
    fn over(disk: &MemoryStore, pause: Duration, answer: Answer) -> Arc<dyn Store> {
        let clock = disk.clone();
        let before_file = Box::new(move || clock.set_now(clock.now().unwrap().plus(pause)));
        Arc::new(Self { before_file, answer, ..Self::of(Arc::new(disk.clone())) })
    }

    fn ahead(inner: Arc<dyn Store>, ahead: Duration) -> Arc<dyn Store> {
        Arc::new(Self { ahead, ..Self::of(inner) })
    }

    fn interrupted(inner: Arc<dyn Store>, meanwhile: BeforeAppend) -> Arc<dyn Store> {
        Arc::new(Self { before_append: Mutex::new(Some(meanwhile)), ..Self::of(inner) })
    }
}

impl Store for Lockless {
    pass_on! { read list remove create_new }

    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        self.files.fetch_add(1, Ordering::SeqCst);
        (self.before_file)();
        self.inner.create()
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let is_commit = self.files.load(Ordering::SeqCst) > 0;
        if let Some(meanwhile) = is_commit.then(|| self.before_append.lock().take()).flatten() {
            meanwhile();
        }
        let before = self.inner.list("ledger")?;
        self.inner.append(path, tail, bytes)?;
        match self.answer {
            Answer::Lost if self.inner.list("ledger")? != before => {
                Err(StoreError::io(crate::store::Verb::Append, path, std::io::Error::other("no answer")))
            }
            _ => Ok(()),
        }
    }

    fn lock(&self, _: &str) -> Result<Box<dyn Guard>, StoreError> {
        Ok(Box::new(()))
    }

    fn has_process_locks(&self) -> bool {
        false
    }

    fn now(&self) -> Result<Instant, StoreError> {
        Ok(self.inner.now()?.plus(self.ahead))
    }
}

/// A disk shared by several machines that do not see each other's locks.
pub fn without_locks(disk: &MemoryStore) -> Arc<dyn Store> {
    Lockless::over(disk, Duration::ZERO, Answer::Arrives)
}

fn disk() -> MemoryStore {
    let disk = MemoryStore::new();
    disk.set_now(now());
    disk
}

fn lines(archive: &Archive) -> Vec<CommitSummary> {
    archive.lines(&team(), archive.read(&team()).unwrap().state().seq).unwrap().lines
}

fn assert_clean(disk: &MemoryStore, steps: usize) {
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = open(&store);
    assert_eq!(ids_in(&archive), ids_after(steps));
    assert_eq!(
        lines(&archive).iter().map(|line| line.seq.0).collect::<Vec<_>>(),
        (1..=steps as u64).collect::<Vec<_>>()
    );
    assert!(verify(disk, &VerifyOptions::default()).unwrap().is_clean());
}

/// `vacuum` keeps a file for two hours, so a commit whose first file is older than one hour begins again.
#[test]
fn a_commit_of_more_than_an_hour_is_refused() {
    for (minutes, is_stalled) in [(10, false), (59, false), (61, true), (600, true)] {
        let disk = disk();
        let pause = Duration::from_secs(minutes * 60);
        // The first step writes two files and two salts, so it pauses four times.
        let store = Lockless::over(&disk, pause / 4, Answer::Arrives);
        let archive = open(&store);
        let mut slow = writer(&archive);
        match commit(&mut slow, history().swap_remove(0)) {
            Err(ArchiveError::Stalled { .. }) => {
                assert!(is_stalled, "{minutes} minutes");
                assert!(files_under(&store, "ledger").is_empty());
                let quick: Arc<dyn Store> = Arc::new(disk.clone());
                drop(slow);
                let _ = commit(&mut writer(&open(&quick)), history().swap_remove(0)).unwrap();
            }
            other => assert!(!is_stalled && other.is_ok(), "{minutes} minutes: {other:?}"),
        }
        assert_clean(&disk, 1);
    }
}

/// S2: of two writers of one team, one appends each line; the other is refused and reads the ledger again.
#[test]
fn one_of_two_writers_is_fenced_and_continues_after_a_reopen() {
    for midnight in [false, true] {
        let disk = disk();
        let store = without_locks(&disk);
        let archive = open(&store);
        let mut steps = history().into_iter();
        let _ = commit(&mut writer(&archive), steps.next().unwrap()).unwrap();
        let (mut zombie, mut owner) = (writer(&archive), writer(&archive));
        let draft = steps.next().unwrap();
        let next_day = now().plus(Duration::from_secs(86_400));
        // The owner continues in the next day's file, or in the same one.
        let _ = owner.commit(draft.clone(), if midnight { next_day } else { now() }).unwrap();
        for (nth, at) in [now(), next_day, next_day.plus(Duration::from_secs(86_400))].into_iter().enumerate() {
            let late = zombie.commit(
                Draft { body: Body { reviews: vec![records::review("late")], ..draft.body.clone() }, ..draft.clone() },
                at,
            );
            let Err(error) = late else { panic!("a fork at {at}: {late:?}") };
            assert!(error.needs_reopen() && error.is_fenced() == (nth == 0), "{error}");
        }
        drop(zombie);
        let mut again = writer(&archive);
        assert_eq!(again.state(), owner.state());
        assert_eq!(again.commit(draft, next_day).unwrap(), Committed::AlreadyCommitted { seq: again.state().seq });
        assert_clean(&disk, 2);
    }
}

/// S1 and S3: while a writer stalls between its files and its line for longer than the grace, another process only vacuums. `hand`
/// opens the store for a process. Returns the answer to the late commit, and the faults of the archive after it.
fn vacuumed_beside_a_stalled_commit(
    hand: impl Fn() -> Arc<dyn Store>,
    planted: Option<Bug>,
) -> (Result<Committed, ArchiveError>, Vec<FaultCode>) {
    let mut steps = history().into_iter();
    let _ = commit(&mut writer(&open(&hand())), steps.next().unwrap()).unwrap();
    let stalled = Duration::from_secs(8 * 86_400);
    let other = Lockless::ahead(hand(), stalled);
    let vacuum = move || {
        let removed = writer(&open(&other)).vacuum(now().plus(stalled)).unwrap().expired;
        assert!(removed.len() >= 3, "{removed:?}");
    };
    let archive = open(&Lockless::interrupted(hand(), Box::new(vacuum)));
    let mut slow = writer(&archive);
    let draft = steps.next().unwrap();
    CURRENT.set(planted);
    let answer = commit(&mut slow, draft.clone());
    CURRENT.set(None);
    drop(slow);
    if answer.is_err() {
        let _ = commit(&mut writer(&archive), draft).unwrap();
        assert_eq!(ids_in(&archive), ids_after(2));
    }
    let faults = verify(hand().as_ref(), &VerifyOptions::default()).unwrap().faults;
    (answer, faults.into_iter().map(|fault| fault.code).collect())
}

#[test]
fn a_vacuum_fences_a_commit_that_stalled_for_longer_than_the_grace() {
    let fenced_on = |disk: &MemoryStore, planted| {
        vacuumed_beside_a_stalled_commit(|| Arc::new(disk.clone()) as Arc<dyn Store>, planted)
    };
    let (answer, faults) = fenced_on(&disk(), None);
    assert!(matches!(answer, Err(ArchiveError::Fenced { .. })) && faults.is_empty(), "{answer:?}, {faults:?}");
    let (bug, law) = (Bug::VacuumUnfenced, "S3");
    let (answer, faults) = fenced_on(&disk(), Some(bug));
    let is_broken = answer.is_ok() && faults.contains(&FaultCode::FileMissing);
    assert!(is_broken, "planted {bug:?} breaks {law}: {answer:?}, {faults:?}");
}

/// The ages are those of the server's clock, which one process sees eight days later.
#[test]
fn a_vacuum_on_an_independent_server_fences_a_stalled_commit() {
    let Some((_server, hand)) = ministack() else { return };
    let (answer, faults) = vacuumed_beside_a_stalled_commit(|| Arc::new(hand()) as Arc<dyn Store>, None);
    assert!(matches!(answer, Err(ArchiveError::Fenced { .. })) && faults.is_empty(), "{answer:?}, {faults:?}");
}

/// An order removes files that no line names. If no row of the team holds the subject, it still fences a commit that has written
/// its files and not its line.
#[test]
fn an_order_without_rows_in_a_team_fences_a_commit_of_another_writer() {
    for stalled in [0, 3, 8 * 24].map(|hours| Duration::from_secs(hours * 3_600)) {
        let disk = disk();
        let mut steps = history().into_iter();
        let _ = commit(&mut writer(&open(&without_locks(&disk))), steps.next().unwrap()).unwrap();
        let other = Lockless::ahead(Arc::new(disk.clone()), stalled);
        let order = move || {
            let archive = open(&other);
            let subject = Subject::new(["nobody@example.com"]).unwrap();
            let (order, pending) = archive.new_order("DPO-1", &subject, BTreeSet::from([team()]));
            let erasure = writer(&archive).erase(&order, &pending, now().plus(stalled)).unwrap();
            assert!(erasure.parts.is_empty() && erasure.removed > 0, "{erasure:?}");
            pending.destroy(archive.store().as_ref()).unwrap();
        };
        let archive = open(&Lockless::interrupted(Arc::new(disk.clone()), Box::new(order)));
        let mut slow = writer(&archive);
        let draft = steps.next().unwrap();
        let error = commit(&mut slow, draft.clone()).expect_err("its files are gone");
        assert!(error.needs_reopen(), "{stalled:?}: {error}");
        drop(slow);
        let _ = commit(&mut writer(&archive), draft).unwrap();
        assert_eq!(ids_in(&archive), ids_after(2));
        assert!(verify(&disk, &VerifyOptions::default()).unwrap().is_clean(), "{stalled:?}");
    }
}

/// A commit writes a file with the subject after the order began and before the order's line, which fences the commit.
#[test]
fn an_order_erases_the_files_of_a_commit_that_it_fences() {
    let disk = disk();
    let archive = open(&without_locks(&disk));
    let mut steps = history().into_iter();
    for draft in steps.by_ref().take(2) {
        let _ = commit(&mut writer(&archive), draft).unwrap();
    }
    let [(begin, begins), (write, written), (end, ends)] = std::array::from_fn(|_| mpsc::channel::<()>());
    let clock = disk.clone();
    let before_line = move || {
        clock.set_now(now().plus(Duration::from_secs(1)));
        begin.send(()).unwrap();
        written.recv().unwrap();
    };
    let other = Lockless::interrupted(
        Arc::new(disk.clone()),
        Box::new(move || {
            write.send(()).unwrap();
            ends.recv().unwrap();
        }),
    );
    let fenced = scope(|threads| {
        let late = threads.spawn(move || {
            begins.recv().unwrap();
            commit(&mut writer(&open(&other)), steps.next().unwrap())
        });
        let ours = open(&Lockless::interrupted(Arc::new(disk.clone()), Box::new(before_line)));
        let subject = Subject::new(["someone@example.com"]).unwrap();
        let (order, pending) = ours.new_order("DPO-1", &subject, BTreeSet::from([team()]));
        let _ = writer(&ours).erase(&order, &pending, now()).unwrap();
        pending.destroy(&disk).unwrap();
        end.send(()).unwrap();
        late.join().unwrap()
    });
    assert!(matches!(fenced, Err(ArchiveError::Fenced { .. })), "{fenced:?}");
    assert_eq!(erasure::check_gone(&disk), Ok(()));
    erasure::assert_clean(&disk);
}

/// The files of an order take longer than one commit may: the order commits them in several lines.
#[test]
fn an_order_of_more_than_an_hour_is_carried_out() {
    for (minutes, unlinkable) in [(20, false), (15, true)] {
        let disk = disk();
        let archive = open(&without_locks(&disk));
        for date in ["2026-11-01", "2026-11-02", "2026-11-03", "2026-11-04", "2026-11-05"] {
            let windows = vec![record(day(date), WindowState::Provisional, 1)];
            let draft = Draft {
                body: Body { windows, ..Body::default() },
                rows: vec![rows(date, events(date, 0, 1), false)],
                ..Draft::default()
            };
            let _ = commit(&mut writer(&archive), draft).unwrap();
        }
        let slow = open(&Lockless::over(&disk, Duration::from_secs(minutes * 60), Answer::Arrives));
        let subject = Subject::new(["someone@example.com"]).unwrap();
        let (order, pending) = slow.new_order("DPO-1", &subject, BTreeSet::from([team()]));
        let pending = if unlinkable { pending.making_unlinkable() } else { pending };
        let erasure = writer(&slow).erase(&order, &pending, now()).unwrap();
        pending.destroy(&disk).unwrap();
        assert_eq!(erasure.parts.iter().map(|part| (part.files, part.rows)).collect::<Vec<_>>(), [(5, 5)]);
        let state = archive.read(&team()).unwrap().state().clone();
        let lines: Vec<bool> = state.erased.iter().map(|(_, record)| record.replaced_salts()).collect();
        assert_eq!(lines, [unlinkable; 3]);
        assert_eq!(files_under(archive.store(), "salts").len(), state.salts.len());
        assert_eq!(erasure::check_gone(&disk), Ok(()));
        erasure::assert_clean(&disk);
    }
}

#[test]
fn a_lost_answer_to_an_append_is_resolved_by_reading() {
    let disk = disk();
    for step in 0..3 {
        // The answer to opening arrives; the answer to the commit is lost.
        let lost = Lockless::over(&disk, Duration::ZERO, Answer::Lost);
        let archive = open(&lost);
        let draft = history().swap_remove(step);
        let mut deaf = writer(&archive);
        let error = commit(&mut deaf, draft.clone()).unwrap_err();
        assert!(error.needs_reopen(), "{error}");
        assert!(matches!(commit(&mut deaf, draft.clone()), Err(ArchiveError::Poisoned { .. })));
        drop(deaf);
        let hearing: Arc<dyn Store> = Arc::new(disk.clone());
        let mut reopened = writer(&open(&hearing));
        let seq = reopened.state().seq;
        assert_eq!(commit(&mut reopened, draft).unwrap(), Committed::AlreadyCommitted { seq });
        assert_clean(&disk, step + 1);
    }
}

/// Both write the same line at the same place: only the random nonce distinguishes the two lines.
#[test]
fn only_one_of_two_writers_of_equal_lines_commits() {
    let disk = disk();
    let store = without_locks(&disk);
    let archive = open(&store);
    let draft = Draft::from(Body { reviews: vec![records::review("somebody")], ..Body::default() });
    let (mut one, mut other) = (writer(&archive), writer(&archive));
    let committed = commit(&mut one, draft.clone()).unwrap();
    assert!(matches!(committed, Committed::Committed { .. }), "{committed:?}");
    let error = commit(&mut other, draft.clone()).unwrap_err();
    assert!(error.needs_reopen(), "{error}");
    drop(other);
    let seq = one.state().seq;
    assert_eq!(commit(&mut writer(&archive), draft).unwrap(), Committed::AlreadyCommitted { seq });
    assert_eq!(lines(&archive).len(), 1);
    assert!(verify(&disk, &VerifyOptions::default()).unwrap().is_clean());
}

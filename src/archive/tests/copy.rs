//! Copies of an archive: interrupted, repeated, and beside a `vacuum` of the target.

use parking_lot::Mutex;

use super::super::{Copied, Copy, CopyStep, FaultCode, VerifyOptions, verify};
use super::*;
use crate::model::GRACE_MIN;
use crate::store::{Fault, FaultyStore, LocalStore, put};

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);

fn shared(disk: &MemoryStore) -> Arc<dyn Store> {
    Arc::new(disk.clone())
}

fn copier(from: &MemoryStore, to: Arc<dyn Store>) -> Result<Copy, ArchiveError> {
    Copy::new(Archive::open(shared(from)).unwrap(), to, DAY)
}

fn try_copy(from: &MemoryStore, to: Arc<dyn Store>) -> Result<Copied, ArchiveError> {
    copier(from, to)?.team(&team(), &|_| {})
}

fn copy(from: &MemoryStore, to: &MemoryStore) -> Copied {
    try_copy(from, shared(to)).unwrap()
}

fn is_clean(disk: &MemoryStore) {
    let report = verify(disk, &VerifyOptions { grace: DAY, ..VerifyOptions::default() }).unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
}

/// Writes the live files of an archive to a place, as a copy does that is interrupted before its first line.
fn put_live_files(from: &MemoryStore, to: &MemoryStore) -> Vec<String> {
    let live = live_under(&shared(from), "tables");
    for path in &live {
        put(to, path, &from.read(path).unwrap().to_bytes().unwrap()).unwrap();
    }
    live
}

/// A copy continues after an interruption at any operation of the target.
#[test]
fn a_copy_continues_after_any_interruption() {
    let disk = MemoryStore::new();
    let _ = committed(&shared(&disk));
    let copy = |to: Arc<dyn Store>| try_copy(&disk, to);
    let (mut cut, mut without_line) = (0, 0);
    for verb in 0..200 {
        let target = MemoryStore::new();
        let faulty = FaultyStore::new(Arc::new(target.clone()), verb, true, Fault::FailedButDone);
        cut += u64::from(copy(Arc::new(faulty)).is_err());
        let whole: Arc<dyn Store> = Arc::new(target.snapshot());
        if files_under(&whole, "ledger").is_empty() && !files_under(&whole, "tables").is_empty() {
            let faults = verify(whole.as_ref(), &VerifyOptions::default()).unwrap().faults;
            let is_named = |detail: &str| detail.contains("if a copy began here, run annals copy again");
            let named = faults.iter().any(|fault| fault.code == FaultCode::SeqGap && is_named(&fault.detail));
            assert!(named && open(&whole).writer(&team()).is_err(), "verb {verb}: {faults:?}");
            without_line += 1;
        }
        let _ = copy(Arc::clone(&whole)).unwrap();
        let again = copy(Arc::clone(&whole)).unwrap();
        assert_eq!((again.files, again.lines), (0, 0), "verb {verb}");
        assert_eq!(ids_in(&open(&whole)), ids_after(history().len()), "verb {verb}");
        for path in files_under(&whole, "ledger") {
            assert_eq!(whole.read(&path).unwrap().to_bytes().unwrap(), disk.read(&path).unwrap().to_bytes().unwrap());
        }
    }
    assert!(cut > 30 && without_line > 2, "{cut} copies were cut off, {without_line} before the first line");
    let other = MemoryStore::new();
    let _ = Archive::open_or_create(Arc::new(other.clone()), || "archive-2".to_owned()).unwrap();
    assert!(matches!(copy(Arc::new(other)), Err(ArchiveError::OtherArchive { .. })));
    let directory = tempfile::tempdir().unwrap();
    let _ = copy(Arc::new(LocalStore::new(directory.path()))).unwrap();
}

/// A power loss can leave the last line of a ledger without its newline. Readers and writers count this line.
#[test]
fn a_last_line_without_its_newline_is_copied() {
    let (disk, target) = (MemoryStore::new(), MemoryStore::new());
    let _ = committed(&shared(&disk));
    let ledgers = files_under(&shared(&disk), "ledger");
    let [path] = ledgers.as_slice() else { panic!("{ledgers:?}") };
    let whole = disk.read(path).unwrap().to_bytes().unwrap();
    disk.tamper(path, Some(whole.slice(..whole.len() - 1)));
    assert_eq!(copy(&disk, &target).lines, history().len() as u64);
    assert_eq!(target.read(path).unwrap().to_bytes().unwrap(), whole);
    assert_eq!(ids_in(&open(&shared(&target))), ids_after(history().len()));
    is_clean(&target);
    assert_eq!(copy(&disk, &target).lines, 0, "the target already has the line");
    // A torn line counts nowhere.
    disk.tamper(path, Some([&whole[..], &whole[..100]].concat().into()));
    assert_eq!(copy(&disk, &target).lines, 0);
    assert_eq!(target.read(path).unwrap().to_bytes().unwrap(), whole);
}

/// In a bucket, `vacuum` would soon remove the old files of an interrupted copy.
#[test]
fn an_interrupted_copy_writes_its_old_files_again() {
    let disk = MemoryStore::new();
    let _ = committed(&shared(&disk));
    for (age, is_young) in [(MINUTE, true), (MINUTE * 30, true), (MINUTE * 31, false), (DAY * 9, false)] {
        let target = MemoryStore::new();
        target.set_now(now());
        let _ = copier(&disk, shared(&target)).unwrap();
        let live = put_live_files(&disk, &target).len() as u64;
        assert!(live > 2, "{live} files");
        target.set_now(now().plus(age));
        let copied = copy(&disk, &target);
        assert_eq!((copied.held, copied.files), if is_young { (live, 0) } else { (0, live) }, "{age:?}");
        is_clean(&target);
        target.set_now(now().plus(age + DAY * 9));
        let again = copy(&disk, &target);
        assert_eq!((again.held, again.files), (live, 0), "{age:?}: a line names each file, so its age does not matter");
    }
}

/// A `vacuum` of a bucket can have decided to remove old files that an interrupted copy left. If the copy wrote them again at this
/// moment, the `vacuum` would remove the new files.
#[test]
fn a_copy_writes_no_file_that_a_vacuum_can_be_removing() {
    let (disk, target) = (MemoryStore::new(), MemoryStore::new());
    target.set_now(now());
    let mut writer = writer(&open(&shared(&disk)));
    for (step, draft) in history().into_iter().enumerate() {
        let _ = commit(&mut writer, draft).unwrap();
        if step == 1 {
            let _ = copy(&disk, &target);
        }
    }
    let _ = put_live_files(&disk, &target);
    target.set_now(now().plus(DAY + MINUTE));
    let of_vacuum = open(&shared(&target)).with_grace(DAY).obsolete_files(&team()).unwrap().expired;
    assert!(of_vacuum.len() > 2, "{of_vacuum:?}");
    let refused = try_copy(&disk, shared(&target)).unwrap_err();
    assert!(matches!(&refused, ArchiveError::Leftover { .. }), "{refused}");
    of_vacuum.iter().for_each(|file| target.remove(&[&file.path]).unwrap());
    let _ = copy(&disk, &target);
    is_clean(&target);
    assert_eq!(ids_in(&open(&shared(&target))), ids_after(history().len()));
}

/// A copy that takes longer than the grace: a `vacuum` beside it never finds one of its files.
#[test]
fn a_long_copy_names_its_files_in_time() {
    let (disk, target) = (MemoryStore::new(), MemoryStore::new());
    target.set_now(now());
    let mut writer = writer(&open(&shared(&disk)));
    for number in 1..=9 {
        let date = format!("2026-11-{number:02}");
        let windows = vec![record(day(&date), WindowState::Settled, 1)];
        let _ = commit(
            &mut writer,
            Draft {
                body: Body { windows, ..Body::default() },
                rows: vec![rows(&date, events(&date, 0, 1), true)],
                ..Draft::default()
            },
        );
    }
    let live = live_under(&shared(&disk), "tables").len();
    let (copying, lines) = (copier(&disk, shared(&target)).unwrap(), Mutex::new(Vec::new()));
    let slow = |step: CopyStep| {
        if matches!(step, CopyStep::Needed(_)) {
            return;
        }
        let mut lines = lines.lock();
        target.set_now(target.now().unwrap().plus(MINUTE * 35));
        let archive = open(&shared(&target)).with_grace(GRACE_MIN);
        assert_eq!(archive.obsolete_files(&team()).unwrap().expired, [], "after {} files", lines.len() + 1);
        lines.push(archive.read(&team()).unwrap().state().seq.0);
    };
    let copied = copying.team(&team(), &slow).unwrap();
    let lines = lines.into_inner();
    assert_eq!((copied.files, copied.lines, lines.len()), (live as u64, 9, live));
    assert!(live > 6 && lines[0] == 0 && lines[live - 1] >= 5, "the lines follow their files: {lines:?}");
    is_clean(&target);
    assert_eq!(ids_in(&open(&shared(&target))).len(), 9);
}

/// The lines of a day remove files that the copy of the day before took.
#[test]
fn a_copy_that_is_repeated_every_day_verifies() {
    let (disk, target) = (MemoryStore::new(), MemoryStore::new());
    let archive = open(&shared(&disk));
    let (mut time, mut removed, mut steps) = (now(), 0, history().into_iter());
    for _ in 0..history().len() + 4 {
        time = time.plus(DAY + MINUTE);
        disk.set_now(time);
        target.set_now(time);
        if let Some(draft) = steps.next() {
            let _ = writer(&archive).commit(draft, time).unwrap();
        }
        removed += copy(&disk, &target).removed;
        is_clean(&target);
    }
    assert!(removed > 3, "{removed} files were removed");
    assert_eq!(files_under(&shared(&target), "tables"), live_under(&shared(&disk), "tables"));
    assert_eq!(ids_in(&open(&shared(&target))), ids_after(history().len()));
}

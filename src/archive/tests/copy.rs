//! Copies of an archive: interrupted, and repeated.

use super::super::{Copied, Copy, VerifyOptions, verify};
use super::*;
use crate::store::{Fault, FaultyStore, LocalStore};

fn shared(disk: &MemoryStore) -> Arc<dyn Store> {
    Arc::new(disk.clone())
}

fn try_copy(from: &MemoryStore, to: Arc<dyn Store>) -> Result<Copied, ArchiveError> {
    Copy::new(Archive::open(shared(from)).unwrap(), to)?.team(&team(), &mut |_, _, _| {})
}

fn copy(from: &MemoryStore, to: &MemoryStore) -> Copied {
    try_copy(from, shared(to)).unwrap()
}

fn is_clean(disk: &MemoryStore) {
    let report = verify(disk, &VerifyOptions::default()).unwrap();
    assert!(report.is_clean(), "{:?}", report.faults);
}

/// A copy continues after an interruption at any operation of the target.
#[test]
fn a_copy_continues_after_any_interruption() {
    let disk = MemoryStore::new();
    let _ = committed(&shared(&disk));
    let copy = |to: Arc<dyn Store>| try_copy(&disk, to);
    let mut cut = 0;
    for verb in 0..200 {
        let target = MemoryStore::new();
        let faulty = FaultyStore::new(Arc::new(target.clone()), verb, true, Fault::FailedButDone);
        cut += u64::from(copy(Arc::new(faulty)).is_err());
        let whole: Arc<dyn Store> = Arc::new(target.snapshot());
        let _ = copy(Arc::clone(&whole)).unwrap();
        let again = copy(Arc::clone(&whole)).unwrap();
        assert_eq!((again.files, again.lines), (0, 0), "verb {verb}");
        assert_eq!(ids_in(&open(&whole)), ids_after(history().len()), "verb {verb}");
        for path in files_under(&whole, "ledger") {
            assert_eq!(whole.read(&path).unwrap().to_bytes().unwrap(), disk.read(&path).unwrap().to_bytes().unwrap());
        }
    }
    assert!(cut > 30, "{cut} copies were cut off");
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

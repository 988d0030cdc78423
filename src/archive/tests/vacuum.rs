//! The files that `vacuum` removes and keeps: alone, beside a commit, a reader and a second writer, and interrupted.

use parking_lot::Mutex;

use super::super::{FaultCode, ObsoleteFiles, VerifyOptions, verify};
use super::*;
use crate::model::GRACE_MIN;
use crate::planted::{Bug, CURRENT};
use crate::store::{Fault, FaultyStore, ListHookStore, MemoryStore, put};

const DAY: Duration = Duration::from_secs(86_400);

fn disk() -> (MemoryStore, Arc<dyn Store>) {
    let disk = MemoryStore::new();
    disk.set_now(now());
    (disk.clone(), Arc::new(disk))
}

fn paths(files: &[crate::store::Listed]) -> Vec<&str> {
    files.iter().map(|file| file.path.as_str()).collect()
}

fn gone(disk: &MemoryStore, before: &[String]) -> Vec<String> {
    before.iter().filter(|path| disk.read(path).is_err()).cloned().collect()
}

/// An archive with every kind of file that a vacuum meets, and the files that no line names.
fn littered() -> (MemoryStore, Archive, Vec<String>) {
    let (disk, store) = disk();
    let archive = committed(&store);
    let named = archive.read(&team()).unwrap().state().files.clone();
    put(&disk, "tables/activity/team=acme/month=2026-11/20261101t000000z-part-0123456789abcdef.parquet", b"x").unwrap();
    put(&disk, "scratch/left", b"x").unwrap();
    let left = files_under(&store, "tables").into_iter().filter(|path| !named.contains_key(path));
    let left = left.chain(["scratch/left".to_owned()]).collect();
    (disk, archive, left)
}

#[test]
fn unnamed_files_are_removed_only_after_the_grace() {
    let (disk, archive, mut left) = littered();
    let archive = archive.with_grace(DAY);
    put(&disk, "tables/activity/team=other/month=2026-11/20261101t000000z-part-0123456789abcdef.parquet", b"x")
        .unwrap();
    put(&disk, "tables/connections/notes.txt", b"of somebody else").unwrap();
    let all = files_under(archive.store(), "");
    for (age, is_due) in [(Duration::ZERO, false), (DAY, false), (DAY + Duration::from_nanos(1), true)] {
        disk.set_now(now().plus(age));
        let mut found = archive.obsolete_files(&team()).unwrap();
        found.expired.sort_by(|a, b| a.path.cmp(&b.path));
        found.kept.sort_by(|a, b| a.path.cmp(&b.path));
        left.sort();
        let (due, other) = if is_due { (&found.expired, &found.kept) } else { (&found.kept, &found.expired) };
        assert_eq!((paths(due), other.len()), (left.iter().map(String::as_str).collect(), 0), "{age:?}");
        assert_eq!(gone(&disk, &all), Vec::<String>::new(), "a dry run removes nothing");
    }
    let removed = writer(&archive).vacuum(now()).unwrap();
    assert_eq!(removed.expired.len(), left.len());
    assert_eq!(gone(&disk, &all), {
        let mut left = left.clone();
        left.sort();
        left
    });
    assert_eq!(ids_in(&archive), ids_after(history().len()));
    assert_eq!(writer(&archive).vacuum(now()).unwrap(), ObsoleteFiles::default(), "again there is nothing");
}

/// Two commits in an archive with a grace of a day, and the next draft.
fn two_commits() -> (MemoryStore, Archive, TeamWriter, Draft) {
    let (disk, store) = disk();
    let archive = open(&store).with_grace(DAY);
    let mut writer = writer(&archive);
    let mut steps = history().into_iter();
    for draft in steps.by_ref().take(2) {
        let _ = commit(&mut writer, draft).unwrap();
    }
    (disk, archive, writer, steps.next().unwrap())
}

/// S4: a reader that began before a commit finishes within the grace. Later an error names a file that is gone.
#[test]
fn a_reader_finishes_within_the_grace_and_is_refused_after_it() {
    let (disk, archive, mut writer, next) = two_commits();
    let reader = archive.read(&team()).unwrap();
    let seen = || reader.rows().events_in(Stream::Connections, Range::new(Instant::EARLIEST, Instant::LATEST));
    let begun = seen().unwrap();
    let _ = commit(&mut writer, next).unwrap();
    for age in [Duration::ZERO, DAY] {
        disk.set_now(now().plus(age));
        let _ = writer.vacuum(now()).unwrap();
        assert_eq!(seen().unwrap(), begun, "{age:?}");
    }
    disk.set_now(now().plus(DAY + Duration::from_secs(1)));
    let _ = writer.vacuum(now()).unwrap();
    let error = seen().unwrap_err().to_string();
    let mut gone = reader.state().files.keys().filter(|path| disk.read(path).is_err());
    assert!(gone.any(|path| error.contains(path.as_str())), "{error}");
}

/// Today's line removes a file that is a month old: the file remains for the grace after the line.
#[test]
fn the_grace_begins_at_the_removing_line() {
    let (disk, _, mut writer, next) = two_commits();
    let later = now().plus(DAY * 30);
    disk.set_now(later);
    let before: Vec<String> = writer.state().files.keys().cloned().collect();
    let _ = writer.commit(next, later).unwrap();
    let removed: Vec<&String> = before.iter().filter(|path| !writer.state().files.contains_key(*path)).collect();
    assert!(removed.len() >= 3, "{removed:?}");
    for age in [Duration::ZERO, DAY] {
        disk.set_now(later.plus(age));
        assert_eq!(paths(&writer.vacuum(now()).unwrap().expired), Vec::<&str>::new(), "{age:?}");
    }
    disk.set_now(later.plus(DAY + Duration::from_secs(1)));
    assert_eq!(writer.vacuum(now()).unwrap().expired.len(), removed.len());
    assert!(verify(&disk, &VerifyOptions::default()).unwrap().is_clean());
}

/// The ledger records the removals, so an archive at rest is not damaged, however old it is. An altered file is.
#[test]
fn an_old_intact_file_that_a_line_removed_is_a_notice() {
    let (disk, store) = disk();
    let archive = committed(&store);
    let last = archive.read(&team()).unwrap().state().seq;
    for (days, notices) in [(1, 0), (30, 1)] {
        disk.set_now(now().plus(DAY * days));
        let left = archive.obsolete_files(&team()).unwrap();
        let report = verify(&disk, &VerifyOptions::default()).unwrap();
        assert_eq!((&report.faults, report.retired), (&vec![], (left.expired.len() + left.kept.len()) as u64));
        let found: Vec<_> = report.notices.iter().filter(|notice| notice.code == FaultCode::RetiredFile).collect();
        assert_eq!(found.len(), notices, "{days} days: {found:#?}");
        for notice in found {
            assert_eq!(notice.object, "ledger/team=acme");
            assert!(notice.detail.contains("run annals vacuum"), "{notice:#?}");
            assert!((1..=last.0).any(|line| notice.detail.contains(&format!("lines up to {line} "))), "{notice:#?}");
        }
    }
    let altered = archive.obsolete_files(&team()).unwrap().expired.swap_remove(0).path;
    disk.tamper(&altered, Some(Bytes::from_static(b"x")));
    disk.set_now(now().plus(DAY * 60));
    let faults = verify(&disk, &VerifyOptions::default()).unwrap().faults;
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert_eq!((faults[0].code, &faults[0].object), (FaultCode::OrphanFile, &altered));
}

#[test]
fn the_grace_is_longer_than_any_commit() {
    let (disk, archive, left) = littered();
    let archive = archive.with_grace(Duration::ZERO);
    disk.set_now(now().plus(GRACE_MIN));
    assert_eq!(archive.obsolete_files(&team()).unwrap().expired, []);
    disk.set_now(now().plus(GRACE_MIN + Duration::from_nanos(1)));
    assert_eq!(archive.obsolete_files(&team()).unwrap().expired.len(), left.len());
}

/// A snapshot without some files would make vacuum remove them, so a removal needs the whole ledger.
#[test]
fn vacuum_does_not_trust_a_snapshot() {
    let (disk, store) = disk();
    let archive = open(&store).snapshots_every(1);
    let mut kept = writer(&archive);
    for draft in history().into_iter().take(2) {
        let _ = commit(&mut kept, draft).unwrap();
    }
    drop(kept);
    let text = |path: &str| String::from_utf8(disk.read(path).unwrap().to_bytes().unwrap().to_vec()).unwrap();
    for path in files_under(&store, "snapshots") {
        let mut value: serde_json::Value = serde_json::from_str(text(&path).split_once('\n').unwrap().1).unwrap();
        value["files"] = serde_json::json!([]);
        let body = value.to_string();
        let digest = crate::model::Digest::with_domain("annals snapshot v1\n", &[body.as_bytes()]);
        put(&disk, &path, format!("{digest}\n{body}").as_bytes()).unwrap();
    }
    disk.set_now(now().plus(DAY * 30));
    assert_eq!(archive.obsolete_files(&team()).unwrap(), ObsoleteFiles::default());
}

/// A ledger of years is read only if there is something to remove.
#[test]
fn only_a_removal_reads_the_whole_ledger() {
    let (disk, store) = disk();
    let archive = open(&store).snapshots_every(1).with_grace(DAY);
    let mut steps = history().into_iter();
    let _ = writer(&archive).commit(steps.next().unwrap(), now()).unwrap();
    let later = now().plus(DAY * 30);
    disk.set_now(later);
    let mut kept = writer(&archive);
    for step in steps {
        let _ = kept.commit(step, later).unwrap();
    }
    let first = files_under(&store, "ledger").swap_remove(0);
    disk.set_now(now());
    let damaged = vec![b'x'; usize::try_from(disk.read(&first).unwrap().size()).unwrap()];
    disk.tamper(&first, Some(damaged.into()));
    disk.set_now(later);
    let found = archive.obsolete_files(&team()).unwrap();
    assert!(found.expired.is_empty() && !found.kept.is_empty(), "{found:?}");
    disk.set_now(later.plus(DAY * 2));
    let refused = archive.obsolete_files(&team()).unwrap_err();
    assert!(refused.to_string().contains(&first), "{refused}");
}

/// After any interruption of a vacuum, live files remain, and the next vacuum finishes the work.
#[test]
fn an_interrupted_vacuum_leaves_a_valid_archive() {
    let (disk, archive, _) = littered();
    disk.set_now(now().plus(DAY * 30));
    drop(archive);
    for verb in 0..60 {
        for fault in [Fault::Failed, Fault::FailedUndone, Fault::FailedButDone] {
            let copy = disk.snapshot();
            let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(Arc::new(copy.clone()), verb, true, fault));
            let _ = Archive::open(faulty).and_then(|archive| archive.writer(&team())?.vacuum(now()));
            let whole: Arc<dyn Store> = Arc::new(copy.snapshot());
            let archive = Archive::open(whole).unwrap();
            assert_eq!(ids_in(&archive), ids_after(history().len()), "verb {verb}, {fault:?}");
            let _ = writer(&archive).vacuum(now()).unwrap();
            assert_eq!(archive.obsolete_files(&team()).unwrap(), ObsoleteFiles::default(), "verb {verb}, {fault:?}");
            assert!(verify(archive.store().as_ref(), &VerifyOptions::default()).unwrap().is_clean());
        }
    }
}

/// S3: a second writer commits old unnamed files between the vacuum's listing and its read of the ledger: the vacuum finds them
/// named.
#[test]
fn a_file_that_a_concurrent_commit_names_is_kept() {
    let faults_after = |planted: Option<Bug>| {
        let (disk, store) = disk();
        let archive = open_same(&store);
        let mut first = writer(&archive);
        let mut steps = history().into_iter();
        let _ = commit(&mut first, steps.next().unwrap()).unwrap();
        drop(first);
        let next = steps.next().unwrap();
        // The files of a failed commit, older than the grace.
        let copy: Arc<dyn Store> = Arc::new(disk.snapshot());
        let _ = commit(&mut writer(&open_same(&copy)), next.clone()).unwrap();
        for path in files_under(&copy, "tables") {
            disk.tamper(&path, Some(copy.read(&path).unwrap().to_bytes().unwrap()));
        }
        let later = now().plus(DAY * 30);
        disk.set_now(later);
        let again = open_same(&store);
        let pending = Mutex::new(Some(next));
        let hook = move |directory: &str| {
            if directory == "tables/connections/team=acme"
                && let Some(next) = pending.lock().take()
            {
                // Its files have old times here, as with a wrong clock.
                let _ = writer(&again).commit(next, later).unwrap();
            }
        };
        let beside: Arc<dyn Store> = Arc::new(ListHookStore { inner: store.clone(), hook: Box::new(hook) });
        let mut second = writer(&open(&beside));
        CURRENT.set(planted);
        let _ = second.vacuum(now()).unwrap();
        CURRENT.set(None);
        let faults = verify(&disk, &VerifyOptions::default()).unwrap().faults;
        faults.into_iter().map(|fault| fault.code).collect::<Vec<_>>()
    };
    assert_eq!(faults_after(None), []);
    let (bug, law) = (Bug::VacuumReadsFirst, "S3");
    let faults = faults_after(Some(bug));
    let is_missing = |code: &FaultCode| matches!(code, FaultCode::FileMissing | FaultCode::Salt);
    assert!(!faults.is_empty() && faults.iter().all(is_missing), "planted {bug:?} breaks {law}: {faults:?}");
}

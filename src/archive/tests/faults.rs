//! The fault table of the commit: each operation of the store x (failed, failed and known, failed but done) x (only this
//! one, all later ones) x each step of a history; then the crash, a reader, recovery, and the rest of the history.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::{Fault, FaultyStore, LocalStore, MemoryStore};

use super::super::{VerifyOptions, verify};
use super::*;

const FAULTS: [Fault; 3] = [Fault::Failed, Fault::FailedUndone, Fault::FailedButDone];

/// The archive with the random numbers of a step: the same operations leave the same bytes.
fn open_for(store: &Arc<dyn Store>, step: usize) -> Result<Archive, ArchiveError> {
    let archive = Archive::open_or_create(Arc::clone(store), || "archive-1".to_owned())?;
    let next = AtomicU64::new(step as u64 * 1_000);
    Ok(archive.with_random(Arc::new(move || next.fetch_add(1, Ordering::Relaxed))))
}

/// Opens the team and commits one step; if the archive cannot be opened, nothing is committed.
fn attempt(store: &Arc<dyn Store>, step: usize) -> Result<Committed, ArchiveError> {
    let archive = open_for(store, step)?;
    let mut writer = archive.writer(&team())?;
    let draft = draft_of(&mut writer, step)?;
    writer.commit(draft, now())
}

fn draft_of(writer: &mut TeamWriter, step: usize) -> Result<Draft, ArchiveError> {
    with_sessions(writer, history().swap_remove(step))
}

/// Number of operations of a step without failures.
fn verbs_of(store: Arc<dyn Store>, step: usize) -> u64 {
    let counting = FaultyStore::new(store, u64::MAX, false, Fault::Failed);
    let shared: Arc<dyn Store> = Arc::new(counting.clone());
    let _ = attempt(&shared, step).unwrap();
    counting.verbs()
}

/// Checks the laws after any fault in step `step`, on the store after the crash.
fn check_after(store: &Arc<dyn Store>, step: usize, outcome: &Result<Committed, ArchiveError>, case: &str) {
    let whole = [ids_after(step), ids_after(step + 1)];
    let Ok(archive) = Archive::open(Arc::clone(store)) else {
        assert!(step == 0 && outcome.is_err(), "{case}: the manifest is gone");
        return finish(&open(store), 0, case);
    };
    let seen = ids_in(&archive);
    assert!(whole.contains(&seen), "{case}: a reader sees {seen:?}");
    assert_eq!(sessions_in(&archive), seen, "{case}: the sessions differ from the events");
    let report = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
    assert!(report.is_clean(), "{case}: before recovery {:?}", report.faults);
    let writer = archive.writer(&team()).unwrap_or_else(|e| panic!("{case}: recovery: {e}"));
    let steps_done = usize::try_from(writer.state().seq.0).unwrap();
    assert!(steps_done == step || steps_done == step + 1, "{case}: {steps_done} lines");
    assert!(outcome.is_err() || steps_done == step + 1, "{case}: an acknowledged commit is gone");
    assert_eq!(ids_in(&archive), ids_after(steps_done), "{case}: after recovery");
    assert_eq!(sessions_in(&archive), ids_after(steps_done), "{case}: sessions after recovery");
    assert_eq!(quarantined_in(&archive), quarantined_after(steps_done), "{case}: quarantine after recovery");
    let there = files_under(store, "tables");
    assert!(writer.state().files.keys().all(|live| there.contains(live)), "{case}: after recovery");
    drop(writer);
    finish(&archive, steps_done, case);
}

/// A step, whether its commit was acknowledged, and the disk's files after the crash.
type Outcome = (usize, bool, Vec<(String, Bytes)>);

/// The outcomes that were checked. Many faults have the same outcome, so each is checked once.
#[derive(Default)]
struct Checked(HashSet<Outcome>);

impl Checked {
    fn check(&mut self, disk: MemoryStore, step: usize, outcome: &Result<Committed, ArchiveError>, case: &str) {
        let disk: Arc<dyn Store> = Arc::new(disk);
        let content = |path: String| (path.clone(), disk.read(&path).unwrap().to_bytes().unwrap());
        let files = files_under(&disk, "").into_iter().map(content).collect();
        if self.0.insert((step, outcome.is_ok(), files)) {
            check_after(&disk, step, outcome, case);
        }
    }
}

/// Commits the rest of the history, whose result must be the same as without a fault.
fn finish(archive: &Archive, steps_done: usize, case: &str) {
    let mut writer = writer(archive);
    for step in steps_done..history().len() {
        let draft = draft_of(&mut writer, step).unwrap();
        let _ = commit(&mut writer, draft).unwrap_or_else(|e| panic!("{case}: going on: {e}"));
    }
    assert_eq!(ids_in(archive), ids_after(history().len()), "{case}: at the end");
    assert_eq!(sessions_in(archive), ids_after(history().len()), "{case}: sessions at the end");
    assert_eq!(archive.read(&team()).unwrap().state(), writer.state(), "{case}: at the end");
    let report = verify(archive.store().as_ref(), &VerifyOptions::default()).unwrap();
    assert!(report.is_clean(), "{case}: at the end {report:?}");
    assert_eq!(writer.state().seq.0, history().len() as u64, "{case}: at the end");
}

/// The store before each step.
fn stages() -> Vec<MemoryStore> {
    let store = MemoryStore::new();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let mut stages = Vec::new();
    for step in 0..history().len() {
        stages.push(store.snapshot());
        let _ = attempt(&shared, step).unwrap();
    }
    stages
}

#[test]
fn no_failed_operation_loses_or_doubles_a_row() {
    let (mut cases, mut checked) = (0, Checked::default());
    for (step, stage) in stages().iter().enumerate() {
        let verbs = verbs_of(Arc::new(stage.snapshot()), step);
        for verb in 0..verbs {
            for (fault, forever) in FAULTS.into_iter().flat_map(|fault| [(fault, false), (fault, true)]) {
                let case = format!("step {step}, verb {verb} of {verbs}, {fault:?}, forever {forever}");
                let disk = stage.snapshot();
                let faulty = FaultyStore::new(Arc::new(disk.clone()), verb, forever, fault);
                let outcome = attempt(&(Arc::new(faulty) as Arc<dyn Store>), step);
                checked.check(disk.snapshot(), step, &outcome, &case);
                cases += 1;
            }
        }
    }
    assert!(cases >= 800 && checked.0.len() >= 40, "only {cases} cases, {} disks", checked.0.len());
}

#[test]
fn a_failed_writer_continues_or_demands_a_reopen() {
    let mut checked = Checked::default();
    for (step, stage) in stages().iter().enumerate() {
        let verbs = verbs_of(Arc::new(stage.snapshot()), step);
        for (verb, fault) in (0..verbs).flat_map(|verb| FAULTS.map(|fault| (verb, fault))) {
            let case = format!("step {step}, verb {verb} of {verbs}, {fault:?}");
            let disk = stage.snapshot();
            let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(Arc::new(disk.clone()), verb, false, fault));
            let Ok(archive) = open_for(&faulty, step) else { continue };
            let Ok(mut writer) = archive.writer(&team()) else { continue };
            let Ok(draft) = draft_of(&mut writer, step) else { continue };
            let Err(error) = writer.commit(draft.clone(), now()) else { continue };
            let again = writer.commit(draft, now());
            match &again {
                Ok(outcome) => {
                    assert!(!error.needs_reopen(), "{case}: {error}");
                    assert!(matches!(outcome, Committed::Committed { .. }), "{case}: {outcome:?}");
                }
                Err(e) => assert!(error.needs_reopen() && e.needs_reopen(), "{case}: {error}, then {e}"),
            }
            drop(writer);
            checked.check(disk.snapshot(), step, &again, &case);
        }
    }
    assert!(checked.0.len() >= 40, "only {} disks", checked.0.len());
}

#[test]
fn repeatedly_interrupted_recovery_gives_the_same_result() {
    let mut checked = Checked::default();
    for (step, stage) in stages().iter().enumerate() {
        let verbs = verbs_of(Arc::new(stage.snapshot()), step);
        for verb in 0..verbs {
            let disk = stage.snapshot();
            let faulty: Arc<dyn Store> =
                Arc::new(FaultyStore::new(Arc::new(disk.clone()), verb, true, Fault::FailedButDone));
            let outcome = attempt(&faulty, step);
            let mut disk = disk.snapshot();
            for interruption in 0..12 {
                let faulty = FaultyStore::new(Arc::new(disk.clone()), interruption, true, Fault::FailedButDone);
                if let Ok(archive) = Archive::open(Arc::new(faulty)) {
                    let _ = archive.writer(&team());
                }
                disk = disk.snapshot();
            }
            let case = format!("step {step}, verb {verb}, recovery interrupted");
            checked.check(disk, step, &outcome, &case);
        }
    }
    assert!(checked.0.len() >= 40, "only {} disks", checked.0.len());
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, target) = entry.map(|e| (e.path(), to.join(e.file_name()))).unwrap();
        match entry.is_dir() {
            true => copy_tree(&entry, &target),
            false => drop(std::fs::copy(&entry, &target).unwrap()),
        }
    }
}

#[test]
fn the_table_holds_on_a_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    for step in 0..history().len() {
        let verbs = verbs_of(Arc::new(stages()[step].snapshot()), step);
        for verb in (0..verbs).filter(|_| matches!(step, 2..=4)) {
            let fault = FAULTS[usize::try_from(verb % 3).unwrap()];
            let root = directory.path().join(format!("{step}-{verb}"));
            copy_tree(&base, &root);
            let disk: Arc<dyn Store> = Arc::new(LocalStore::new(&root));
            let faulty: Arc<dyn Store> = Arc::new(FaultyStore::new(Arc::clone(&disk), verb, true, fault));
            let outcome = attempt(&faulty, step);
            check_after(&disk, step, &outcome, &format!("disk, step {step}, verb {verb}, {fault:?}"));
        }
        let disk: Arc<dyn Store> = Arc::new(LocalStore::new(&base));
        let _ = attempt(&disk, step).unwrap();
    }
}

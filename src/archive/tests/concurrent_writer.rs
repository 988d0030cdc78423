//! Verify runs while a writer works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::archive::{Body, VerifyOptions, verify};
use crate::store::{Blob, Listed, MemoryStore, StoreError, pass_on};

/// A store whose first `part` file of each listing was just settled, and so removed, by a concurrent writer.
struct Busy {
    inner: Arc<dyn Store>,
    is_due: AtomicBool,
}

impl Busy {
    fn settle(&self, path: &str) {
        let date = crate::model::path::DataPath::parse(path).unwrap().start.day();
        let draft = Draft {
            body: Body { windows: vec![record(day(&date), WindowState::Settled, 2)], ..Body::default() },
            rows: vec![rows(&date, events(&date, 1, 1), true)],
            ..Draft::default()
        };
        let _ = commit(&mut writer(&open(&self.inner)), draft).unwrap();
    }
}

impl Store for Busy {
    pass_on! { create remove append create_new lock now }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        if path.contains("-part-") && self.is_due.swap(false, Ordering::SeqCst) {
            self.settle(path);
        }
        self.inner.read(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        self.is_due.fetch_or(directory.is_empty(), Ordering::SeqCst);
        self.inner.list(directory)
    }
}

fn provisional(days: u32) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    for date in (1..=days).map(|day| format!("2026-11-{day:02}")) {
        let draft = Draft {
            body: Body { windows: vec![record(day(&date), WindowState::Provisional, 1)], ..Body::default() },
            rows: vec![rows(&date, events(&date, 0, 1), false)],
            ..Draft::default()
        };
        let _ = commit(&mut writer, draft).unwrap();
    }
    store
}

#[test]
fn files_replaced_during_a_check_are_not_reported_as_damage() {
    let busy = Busy { inner: provisional(12), is_due: AtomicBool::new(false) };
    let report = verify(&busy, &VerifyOptions::default()).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    assert!(open(&busy.inner).read(&team()).unwrap().state().seq.0 > 12, "nothing was committed meanwhile");
    // A missing file that no writer replaced is still a fault.
    let path = files_under(&busy.inner, "tables").into_iter().find(|path| path.contains("20261112")).unwrap();
    busy.inner.remove(&[&path]).unwrap();
    let report = verify(&busy, &VerifyOptions::default()).unwrap();
    assert_eq!(report.faults.iter().map(|fault| fault.object.as_str()).collect::<Vec<_>>(), [path.as_str()]);
}

#[test]
fn processes_that_begin_an_archive_together_agree_on_its_id() {
    let directory = tempfile::tempdir().unwrap();
    let begin = |number: u32| {
        let store = crate::store::LocalStore::new(directory.path().join("new"));
        Archive::open_or_create(Arc::new(store), || format!("archive-{number}")).unwrap().id().to_owned()
    };
    let begin = &begin;
    let ids: Vec<String> = std::thread::scope(|threads| {
        let begun: Vec<_> = (0..8).map(|number| threads.spawn(move || begin(number))).collect();
        begun.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

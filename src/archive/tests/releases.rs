//! Events leave quarantine only in the commit that adds them as rows.

use crate::store::MemoryStore;

use super::super::{FaultCode, FileEntry, StateError, TeamState, VerifyOptions, verify};
use super::*;
use crate::archive::ledger::rows_sum::RowsSum;

/// The history, whose last step releases an event.
fn released() -> (Arc<dyn Store>, TeamWriter) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut writer = writer(&open(&store));
    for draft in history() {
        let draft = with_sessions(&mut writer, draft).unwrap();
        let _ = commit(&mut writer, draft).unwrap();
    }
    (store, writer)
}

#[test]
fn released_events_become_rows_and_the_others_stay() {
    let (store, writer) = released();
    let archive = open(&store);
    assert_eq!(quarantined_in(&archive), ["odder"]);
    assert_eq!(ids_in(&archive)["odd"], 1);
    assert_eq!(live_under(&store, "tables/quarantine").len(), 1, "the file with both is gone");
    assert_eq!(archive.read(&team()).unwrap().state(), writer.state());
    assert!(verify(store.as_ref(), &VerifyOptions::default()).unwrap().is_clean());
}

#[test]
fn a_quarantine_file_without_events_is_removed() {
    let (store, mut writer) = released();
    let rows = vec![rows("2026-11-02", vec![event("odder", day("2026-11-02").start)], false)];
    let draft = with_sessions(&mut writer, Draft { rows, ..Draft::default() }).unwrap();
    let _ = commit(&mut writer, draft).unwrap();
    assert_eq!(live_under(&store, "tables/quarantine"), Vec::<String>::new());
    assert_eq!(writer.rows().rejects(Stream::Connections).unwrap(), []);
    assert!(verify(store.as_ref(), &VerifyOptions::default()).unwrap().is_clean());
}

#[test]
fn a_release_from_an_unknown_file_is_refused() {
    let (store, mut writer) = released();
    let before = files_under(&store, "ledger");
    let path = writer.state().files_of(Dataset::Quarantine).next().unwrap().path.clone();
    let row = writer.rows().rejects_of(&path).unwrap().remove(0);
    let events = writer.state().files_of(Dataset::Connections).next().unwrap().path.clone();
    let cases = [
        Release { path: path.clone(), released: Vec::new(), kept: vec![row.clone()] },
        Release { path: path.clone(), released: vec![row.clone()], kept: vec![row.clone()] },
        Release { path: "tables/quarantine/none".to_owned(), released: vec![row.clone()], kept: Vec::new() },
        Release { path: events, released: vec![row.clone()], kept: Vec::new() },
        // An event that leaves quarantine without becoming a row.
        Release { path, released: vec![row], kept: Vec::new() },
    ];
    for release in cases {
        let draft = Draft { releases: vec![release.clone()], ..Draft::default() };
        let error = commit(&mut writer, draft).unwrap_err();
        assert!(!error.needs_reopen(), "{release:?}: {error}");
        assert_eq!(files_under(&store, "ledger"), before, "{release:?}");
    }
}

/// The state before the release, and the body of its line.
fn before_and_body() -> (TeamState, Body) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let archive = open(&store);
    let mut writer = writer(&archive);
    let mut before = writer.state().clone();
    for draft in history().into_iter().take(6) {
        before = writer.state().clone();
        let draft = with_sessions(&mut writer, draft).unwrap();
        let _ = commit(&mut writer, draft).unwrap();
    }
    let lines = store.read(&files_under(&store, "ledger").pop().unwrap()).unwrap();
    let mut text = Vec::new();
    let _ = std::io::Read::read_to_end(&mut lines.reader(0), &mut text).unwrap();
    let last = text.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap();
    (before, super::super::LedgerLine::decode(last).unwrap().0.body)
}

#[test]
fn a_line_that_contradicts_its_files_breaks_a_rule() {
    let (before, body) = before_and_body();
    before.check(&body).unwrap();
    let of = |dataset: Dataset| move |file: &FileEntry| file.dataset == dataset;
    let released = body.released.unwrap();
    let with = |change: &dyn Fn(&mut Body)| {
        let mut body = body.clone();
        change(&mut body);
        before.check(&body).unwrap_err()
    };
    let silent = with(&|body| body.released = None);
    assert!(matches!(silent, StateError::RowsLost { dataset: Dataset::Quarantine, .. }), "{silent}");
    let more = with(&|body| body.released = Some(RowsSum { rows: released.rows + 9, ..released }));
    assert!(matches!(more, StateError::Released { rows: 10, .. }), "{more}");
    let other = with(&|body| body.released = Some(RowsSum { digest: body.adds[0].rows_digest, ..released }));
    assert!(matches!(other, StateError::RowsChanged { dataset: Dataset::Quarantine, .. }), "{other}");
    let nowhere = with(&|body| body.adds.retain(|file| !of(Dataset::Connections)(file)));
    assert!(matches!(nowhere, StateError::Released { .. }), "{nowhere}");
    let all_gone = with(&|body| {
        body.adds.retain(|file| !of(Dataset::Quarantine)(file));
        body.released = Some(RowsSum { rows: 2, ..released });
    });
    assert!(matches!(all_gone, StateError::RowsChanged { dataset: Dataset::Quarantine, .. }), "{all_gone}");
}

#[test]
fn verify_names_a_quarantine_that_lost_a_row() {
    let (store, writer) = released();
    let path = writer.state().files_of(Dataset::Quarantine).next().unwrap().path.clone();
    store.remove(&[&path]).unwrap();
    let faults = verify(store.as_ref(), &VerifyOptions::default()).unwrap().faults;
    assert!(faults.iter().any(|fault| fault.code == FaultCode::FileMissing), "{faults:?}");
}

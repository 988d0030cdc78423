//! Erasure in an archive with every kind of file: the values are gone, the sums are right, and a repetition completes an order
//! that failed at any operation.

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;

use super::super::{
    Body, Erasure, FaultCode, HoldAdded, HoldRecord, HoldScope, Order, StateError, VerifyOptions, verify,
};
use super::*;
use crate::archive::deletion::erase::{PendingOrder, Subject};
use crate::planted::{Bug, CURRENT};
use crate::store::{Fault, FaultyStore};

pub const EMAIL: &str = "someone@example.com";
pub const LOCAL: &str = "zoë";

/// An event whose text has the subject in another spelling; every second event is about somebody else.
fn of_subject(row: EventRow, n: usize) -> EventRow {
    if n % 2 == 1 {
        let Detail::Connections(texts) = &row.detail else { panic!("not a connection") };
        let detail = ConnectionDetail { peer_email: Some("other@example.com".into()), ..texts.detail() };
        return EventRow { detail: Detail::Connections(detail.into()), ..row };
    }
    let raw = format!(
        r#"{{"id":"{}","timestamp":{},"peer":{{"SomeOne@example.com":["some\u006fne@example.com","zo\u00eb"]}},"who":"x{EMAIL}"}}"#,
        row.event_id,
        row.time.nanos()
    );
    EventRow { raw: raw.into(), ..row }
}

/// The history of the other tests, with the subject in every second event, in quarantine, in the inventory and in conflicts of
/// sessions.
fn steps() -> Vec<Draft> {
    let mut steps = history();
    for window in steps.iter_mut().flat_map(|step| &mut step.rows) {
        let rows = std::mem::take(&mut window.rows);
        window.rows = rows.into_iter().enumerate().map(|(n, row)| of_subject(row, n)).collect();
    }
    steps[0].rejects.push(reject("broken", format!("{{\"a\":\"{EMAIL}\",\"b\":{EMAIL}, \"c").as_bytes()));
    steps[0].rejects.push(reject("0123456789abcdef0123456789abcdef-1", format!("\u{1}\"{LOCAL}\"").as_bytes()));
    steps[1].inventory[0].1[0].key[0] = LOCAL.to_owned();
    steps
}

pub fn built(store: &Arc<dyn Store>) -> Archive {
    let archive = open(store);
    let mut writer = writer(&archive);
    for (n, step) in steps().into_iter().enumerate() {
        let mut draft = with_sessions(&mut writer, step).unwrap();
        if let Some(session) = draft.sessions.as_mut().and_then(|sessions| sessions.open.first_mut()).filter(|_| n == 0)
        {
            session.conflicts = Some(format!(r#"{{"peer_email":["{EMAIL}","other@example.com"]}}"#));
        }
        let _ = commit(&mut writer, draft).unwrap();
    }
    archive
}

fn subject() -> Subject {
    Subject::new([EMAIL, LOCAL]).unwrap()
}

pub fn new_order(archive: &Archive) -> (Order, PendingOrder) {
    archive.new_order("DPO-1", &subject(), BTreeSet::from([team()]))
}

/// Carries out the order, and repeats it if it was interrupted.
pub fn erase(archive: &Archive) -> Result<Erasure, ArchiveError> {
    erase_as(archive, false)
}

pub fn erase_as(archive: &Archive, unlinkable: bool) -> Result<Erasure, ArchiveError> {
    let pending = archive.pending_orders()?.pop();
    let (order, pending) = match pending {
        Some(pending) => (pending.resumed(&subject()).unwrap(), pending),
        None => new_order(archive),
    };
    let pending = if unlinkable { pending.making_unlinkable() } else { pending };
    let erasure = archive.writer(&team())?.erase(&order, &pending, now())?;
    pending.destroy(archive.store().as_ref())?;
    Ok(erasure)
}

/// The text of every file, and of every text column of every table.
fn texts(store: &dyn Store) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in store.list("").unwrap() {
        let bytes = store.read(&entry.path).unwrap().to_bytes().unwrap();
        found.push((entry.path.clone(), String::from_utf8_lossy(&bytes).into_owned()));
        let Some(dataset) = entry.path.split('/').nth(1).and_then(Dataset::named) else { continue };
        for batch in TableReader::open(store, &entry.path, dataset, Selection::default()).unwrap() {
            for column in batch.unwrap().columns() {
                match column.data_type() {
                    DataType::Utf8 => found.extend(
                        column.as_string::<i32>().iter().flatten().map(|text| (entry.path.clone(), text.to_owned())),
                    ),
                    DataType::Binary => found.extend(
                        column
                            .as_binary::<i32>()
                            .iter()
                            .flatten()
                            .map(|bytes| (entry.path.clone(), String::from_utf8_lossy(bytes).into_owned())),
                    ),
                    _ => {}
                }
            }
        }
    }
    found
}

/// Law S8: no file names the subject. A part of a longer word is not the subject.
pub fn check_gone(store: &dyn Store) -> Result<(), String> {
    for (path, text) in texts(store) {
        let plain = text.to_lowercase().replace(&format!("x{EMAIL}"), "");
        let plain = plain.replace("\\u006f", "o").replace("\\u00eb", "ë");
        if plain.contains(EMAIL) || plain.contains(LOCAL) {
            return Err(format!("{path}: {text}"));
        }
    }
    Ok(())
}

fn assert_gone(store: &dyn Store) {
    assert_eq!(check_gone(store), Ok(()));
}

/// Asserts that the keyed digests of erased events belong to their original texts.
fn check_known(archive: &Archive) -> Result<(), String> {
    let known_as = writer(archive).salts().originals().unwrap();
    let all = Range::new(Instant::EARLIEST, Instant::LATEST);
    let events = archive.read(&team()).unwrap().rows().events_in(Stream::Connections, all).unwrap();
    let originals: BTreeSet<_> = events.iter().filter_map(|event| event.original).collect();
    let meant = steps().into_iter().flat_map(|step| step.rows).flat_map(|window| window.rows);
    let meant = meant.filter(|row| row.raw.windows(4).any(|part| part == b"peer"));
    let meant: BTreeSet<_> = meant.map(|row| known_as(&crate::model::Digest::of(&row.raw))).collect();
    if originals == meant { Ok(()) } else { Err(format!("{} of {} are known", originals.len(), meant.len())) }
}

#[test]
fn the_laws_catch_planted_bugs() {
    for (bug, law) in [
        (None, "none"),
        (Some(Bug::ErasedFilesKept), "S8"),
        (Some(Bug::ErasureUnescaped), "S8"),
        (Some(Bug::ErasedEventsReadAgain), "I3"),
    ] {
        let disk = MemoryStore::new();
        let archive = built(&(Arc::new(disk.clone()) as Arc<dyn Store>));
        CURRENT.set(bug);
        let erased = erase(&archive);
        CURRENT.set(None);
        let _ = erased.unwrap();
        let broken = match (check_gone(&disk), check_known(&archive)) {
            (Err(_), _) => "S8",
            (Ok(()), Err(_)) => "I3",
            (Ok(()), Ok(())) => "none",
        };
        assert_eq!(broken, law, "{bug:?}");
    }
}

/// Law S7.
#[test]
fn erasing_held_rows_is_refused_and_verify_names_a_line_that_did_it() {
    let disk = MemoryStore::new();
    let archive = built(&(Arc::new(disk.clone()) as Arc<dyn Store>));
    let hold = HoldAdded {
        id: "CASE-7".to_owned(),
        reason: "a case".to_owned(),
        by: None,
        at: now(),
        from: Some(at("2026-11-01T00:00:00Z")),
        to: Some(at("2026-11-02T00:00:00Z")),
        scope: HoldScope::Team,
        subject: None,
    };
    let draft = Draft::from(Body { holds: vec![HoldRecord::Add(hold)], ..Body::default() });
    let _ = commit(&mut writer(&archive), draft).unwrap();
    let (order, _) = new_order(&archive);
    assert_eq!(archive.holds_on_order(&team(), &order).unwrap(), BTreeSet::from(["CASE-7".to_owned()]));
    let refused = erase(&archive).unwrap_err().to_string();
    assert!(refused.contains("hold CASE-7"), "{refused}");
    assert!(check_gone(&disk).is_err());
    assert_clean(&disk);
    CURRENT.set(Some(Bug::HoldsForgotten));
    let erased = erase(&archive);
    CURRENT.set(None);
    let _ = erased.unwrap();
    let report = verify(&disk, &VerifyOptions::default()).unwrap();
    assert!(report.faults.iter().any(|fault| fault.code == FaultCode::PolicyViolation), "{:#?}", report.faults);
}

pub fn assert_clean(store: &dyn Store) {
    let report = verify(store, &VerifyOptions::default()).unwrap();
    assert!(report.faults.is_empty(), "{:#?}", report.faults);
}

#[test]
fn the_subject_is_removed_from_every_file_and_other_data_stays() {
    let disk = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = built(&store);
    assert!(texts(&disk).iter().any(|(_, text)| text.contains(EMAIL)));
    let (order, pending) = new_order(&archive);
    let before = archive.read(&team()).unwrap();
    let (found, all) = before.rows_of_subject(&order).unwrap();
    assert_eq!(all, before.state().files.values().map(|file| file.rows).sum::<u64>());
    let erasure = writer(&archive).erase(&order, &pending, now()).unwrap();
    pending.destroy(&disk).unwrap();
    let rows = |dataset: Dataset| found.iter().filter(|row| row.dataset == dataset).count() as u64;
    for part in &erasure.parts {
        assert_eq!(part.rows, rows(part.dataset), "{}", part.dataset);
    }
    let datasets: Vec<&str> = erasure.parts.iter().map(|part| part.dataset.as_str()).collect();
    assert_eq!(datasets, ["connections", "sessions", "quarantine", "inventory_computers"]);
    assert_gone(&disk);
    assert_clean(&disk);
    let after = archive.read(&team()).unwrap();
    assert_eq!(after.rows_of_subject(&order).unwrap().0, []);
    let shape = |reader: &super::super::TeamReader| {
        let files =
            reader.state().files.values().map(|file| (file.dataset, file.role, file.rows, file.first, file.last));
        files.collect::<Vec<_>>()
    };
    assert_eq!(sorted(shape(&after)), sorted(shape(&before)));
    assert_eq!(after.state().windows, before.state().windows);
    assert!(archive.pending_orders().unwrap().is_empty() && erasure.removed > 0);
    assert_eq!(files_under(&store, "tables").len(), after.state().files.len());
    assert_eq!(check_known(&archive), Ok(()));
    // A repetition of the order changes nothing.
    let again = erase(&archive).unwrap();
    assert_eq!((again.seq, again.parts.len(), again.removed), (None, 0, 0));
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}

#[test]
fn writers_continue_after_an_erasure_and_snapshots_include_it() {
    let disk = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = open(&store).snapshots_every(1);
    let mut hand = writer(&archive);
    for (n, step) in steps().into_iter().enumerate() {
        if n == 3 {
            drop(hand);
            let _ = erase(&archive).unwrap();
            assert_gone(&disk);
            hand = writer(&archive);
        }
        let draft = with_sessions(&mut hand, step).unwrap();
        let _ = commit(&mut hand, draft).unwrap();
    }
    assert_clean(&disk);
    drop(hand);
    let first = archive.read(&team()).unwrap().state().erased.len();
    let _ = erase(&archive).unwrap();
    assert_eq!((first, archive.read(&team()).unwrap().state().erased.len()), (1, 2));
    assert_gone(&disk);
    assert_clean(&disk);
}

#[test]
fn a_repeated_order_completes_after_a_failure_of_any_operation() {
    let disk = MemoryStore::new();
    let _ = built(&(Arc::new(disk.clone()) as Arc<dyn Store>));
    let counting = FaultyStore::new(Arc::new(disk.snapshot()), u64::MAX, false, Fault::Failed);
    let _ = erase(&open(&(Arc::new(counting.clone()) as Arc<dyn Store>))).unwrap();
    let verbs = counting.verbs();
    assert!(verbs > 50, "{verbs}");
    let mut half = 0;
    for at in 0..verbs {
        for fault in [Fault::Failed, Fault::FailedButDone] {
            let torn = disk.snapshot();
            let faulty = FaultyStore::new(Arc::new(torn.clone()), at, true, fault);
            let store: Arc<dyn Store> = Arc::new(faulty);
            let Ok(archive) = Archive::open(Arc::clone(&store)) else { continue };
            let unlinkable = at % 2 == 1;
            let _ = erase_as(&archive, unlinkable);
            let archive = open(&(Arc::new(torn.clone()) as Arc<dyn Store>));
            half += archive.pending_orders().unwrap().len();
            let _ = erase_as(&archive, unlinkable).unwrap();
            assert_gone(&torn);
            assert_clean(&torn);
            assert!(archive.pending_orders().unwrap().is_empty());
            // A pseudonym in a Parquet file ends anywhere: compare `erased-` with its 32 digits, where a domain follows.
            let names: BTreeSet<String> = (texts(&torn).into_iter())
                .flat_map(|(_, text)| text.split('"').map(str::to_owned).collect::<Vec<_>>())
                .filter(|text| text.starts_with("erased-") && text.get(39..40) == Some("@"))
                .filter_map(|text| text.get(..39).map(str::to_owned))
                .collect();
            assert_eq!(names.len(), 1, "verb {at}, {fault:?}: {names:?}");
        }
    }
    assert!(half > 10, "{half}");
}

#[test]
fn an_unlinkable_order_replaces_only_the_salts_of_its_months() {
    let disk = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = built(&store);
    let before = archive.read(&team()).unwrap().state().clone();
    let _ = erase_as(&archive, true).unwrap();
    assert_gone(&disk);
    assert_clean(&disk);
    let after = archive.read(&team()).unwrap().state().clone();
    let replaced: Vec<_> = after.salts.iter().filter(|(month, salt)| before.salts[*month] != **salt).collect();
    assert!(!replaced.is_empty() && after.salts.len() == before.salts.len());
    assert_eq!(files_under(&store, "salts").len(), after.salts.len(), "the old salts are gone");
    let report = verify(&disk, &VerifyOptions::default()).unwrap();
    let said = report.notices.iter().filter(|notice| notice.code == FaultCode::SaltReplaced).count();
    assert_eq!(said, replaced.len(), "{:#?}", report.notices);

    let day = files_under(&store, "ledger").into_iter().filter(|path| path.ends_with(".jsonl")).max().unwrap();
    let ledger = disk.read(&day).unwrap().to_bytes().unwrap();
    let last = ledger.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap();
    let body = crate::archive::ledger::line::LedgerLine::decode(last).unwrap().0.body;
    assert_eq!(before.check(&body), Ok(()));
    type Change = fn(&mut Body);
    let changes: [(&str, Change); 5] = [
        ("salts without new digests", |body| body.erased.as_mut().unwrap().resalted.clear()),
        ("new digests without salts", |body| body.salts.clear()),
        ("the key of the team", |body| body.salts[0].month = Instant::from_nanos(0)),
        ("a file that is not live", |body| body.erased.as_mut().unwrap().resalted[0].path.push('x')),
        ("a file twice", |body| {
            let files = &mut body.erased.as_mut().unwrap().resalted;
            files.push(files[0].clone());
        }),
    ];
    for (what, change) in changes {
        let mut body = body.clone();
        change(&mut body);
        assert!(before.check(&body).is_err(), "{what}");
    }
}

#[test]
fn an_erasure_line_with_undeclared_changes_is_refused() {
    let disk = MemoryStore::new();
    let archive = built(&(Arc::new(disk.clone()) as Arc<dyn Store>));
    let before = archive.read(&team()).unwrap().state().clone();
    let _ = erase(&archive).unwrap();
    let after = archive.read(&team()).unwrap().state().clone();
    let (_, record) = after.erased[0].clone();
    let added = |files: &BTreeMap<_, super::super::FileEntry>, others: &BTreeMap<String, super::super::FileEntry>| {
        files.values().filter(|file| !others.contains_key(&file.path)).cloned().collect::<Vec<_>>()
    };
    let removes = added(&before.files, &after.files).into_iter().map(|file| file.path).collect();
    let body = Body { adds: added(&after.files, &before.files), removes, erased: Some(record), ..Body::default() };
    assert_eq!(before.check(&body), Ok(()));
    type Change = fn(&mut Body);
    let record = |body: &mut Body, change: fn(&mut super::super::ErasedRecord)| change(body.erased.as_mut().unwrap());
    let changes: [(&str, Change); 9] = [
        ("another row changed", |body| body.adds[0].rows_digest = crate::model::Digest::of(b"x")),
        ("a row is gone", |body| body.adds[0].rows -= 1),
        ("a file is gone", |body| drop(body.adds.pop())),
        ("a file at another path", |body| body.adds[0].path = body.adds[0].path.replace("11", "12")),
        ("another first row", |body| body.adds[0].first = None),
        ("the line does more", |body| body.streams.push((Stream::Activity, Default::default()))),
        ("no row is declared", |body| body.erased.as_mut().unwrap().parts[0].rows = 0),
        ("too many rows are declared", |body| body.erased.as_mut().unwrap().parts[0].rows = 10_000),
        ("a dataset is not declared", |body| body.erased.as_mut().unwrap().parts.truncate(1)),
    ];
    for (what, change) in changes {
        let mut body = body.clone();
        change(&mut body);
        assert!(before.check(&body).is_err(), "{what}");
    }
    let mut other = body.clone();
    record(&mut other, |record| record.order = "a name".to_owned());
    assert!(matches!(before.check(&other), Err(StateError::Erasure { .. })));
    // The same order for another subject.
    let mut used = before.clone();
    used.erased.push((crate::model::LedgerSeq(1), body.erased.clone().unwrap()));
    assert_eq!(used.check(&body), Ok(()));
    used.erased[0].1.subjects.pop();
    assert!(used.check(&body).unwrap_err().to_string().contains("another subject"));
    // Without its record, the line changes rows without a reason.
    assert!(matches!(before.check(&Body { erased: None, ..body }), Err(StateError::RowsChanged { .. })));
}

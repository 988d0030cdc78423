//! The files that an order of erasure leaves, and the holds that stop it.

use std::collections::BTreeSet;
use std::fs;

use super::super::{FaultCode, HoldAdded, HoldRecord, HoldScope, VerifyFault, VerifyOptions, verify};
use super::erasure::{EMAIL, LOCAL, assert_clean, built, check_gone, erase, erase_as, new_order};
use super::*;
use crate::archive::deletion::erase::Subject;
use crate::model::Digest;
use crate::planted::{Bug, CURRENT};
use crate::store::LocalStore;

const HOUR: Duration = Duration::from_secs(3_600);

fn hold(id: &str, from: Option<&str>, scope: HoldScope) -> HoldAdded {
    let (reason, from) = ("a case".to_owned(), from.map(at));
    HoldAdded { id: id.to_owned(), reason, by: None, at: now(), from, to: None, scope, subject: None }
}

fn holding(holds: impl IntoIterator<Item = HoldAdded>) -> Draft {
    Draft::from(Body { holds: holds.into_iter().map(HoldRecord::Add).collect(), ..Body::default() })
}

fn faults(disk: &MemoryStore, code: FaultCode) -> Vec<VerifyFault> {
    let faults = verify(disk, &VerifyOptions::default()).unwrap().faults;
    faults.into_iter().filter(|fault| fault.code == code).collect()
}

/// An archive after an order, and a file that the order replaced: its path and its bytes.
fn erased() -> (MemoryStore, Archive, String, Bytes) {
    let disk = MemoryStore::new();
    disk.set_now(now());
    let archive = built(&(Arc::new(disk.clone()) as Arc<dyn Store>));
    let before = archive.read(&team()).unwrap().state().files.clone();
    let copy = disk.snapshot();
    let _ = erase(&archive).unwrap();
    let after = archive.read(&team()).unwrap().state().files.clone();
    let path = before.into_keys().find(|path| !after.contains_key(path)).unwrap();
    let replaced = copy.read(&path).unwrap().to_bytes().unwrap();
    (disk, archive, path, replaced)
}

/// The program wrote the files while the clock was an hour ahead.
#[test]
fn an_order_erases_files_that_are_newer_than_the_order() {
    for unlinkable in [false, true] {
        let disk = MemoryStore::new();
        let store: Arc<dyn Store> = Arc::new(disk.clone());
        disk.set_now(now().plus(HOUR));
        let archive = built(&store);
        disk.set_now(now());
        let _ = erase_as(&archive, unlinkable).unwrap();
        assert_eq!(check_gone(&disk), Ok(()));
        let state = archive.read(&team()).unwrap().state().clone();
        assert_eq!(files_under(&store, "salts").len(), state.salts.len(), "the old salts are gone");
        assert_eq!(state.erased.len(), 1, "lines removed these files, so no other writer can name them");
        assert_clean(&disk);
    }
}

#[test]
fn verify_reports_a_replaced_file_that_exists_after_its_order() {
    let (disk, archive, path, replaced) = erased();
    disk.tamper(&path, Some(replaced));
    let found = faults(&disk, FaultCode::OrphanFile);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].object == path && found[0].detail.contains("order DPO-1 erased this file"), "{found:#?}");
    // Until the order is complete, the file is expected.
    new_order(&archive).1.save(&disk).unwrap();
    assert_clean(&disk);
    let notices = verify(&disk, &VerifyOptions::default()).unwrap().notices;
    let notices: Vec<_> = notices.iter().filter(|notice| notice.code == FaultCode::UnfinishedErasure).collect();
    let is_named = |object: &str| notices.iter().any(|notice| notice.object.starts_with(object));
    assert!(notices.len() == 2 && is_named(&path) && is_named("scratch/erasure-"), "{notices:#?}");
}

/// A file that an earlier line removed can hold the subject, too. The order removed it, so it is no mere leftover.
#[test]
fn verify_reports_an_earlier_removed_file_that_exists_after_an_order() {
    let disk = MemoryStore::new();
    disk.set_now(now());
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = built(&store);
    let live = archive.read(&team()).unwrap().state().files.clone();
    let path = files_under(&store, "tables").into_iter().find(|path| !live.contains_key(path)).unwrap();
    let removed = disk.read(&path).unwrap().to_bytes().unwrap();
    let _ = erase(&archive).unwrap();
    disk.tamper(&path, Some(removed));
    disk.set_now(now().plus(HOUR * 24 * 9));
    let found = faults(&disk, FaultCode::OrphanFile);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].object == path && found[0].detail.contains("erased after line"), "{found:#?}");
}

/// Expired and replaced files stay for the grace, and then no row may hold the subject any more.
#[test]
fn an_order_removes_files_of_the_subject_that_no_line_names() {
    let (disk, archive, path, replaced) = erased();
    let (order, _) = new_order(&archive);
    let found = || archive.read(&team()).unwrap().unnamed_files_of_subject(&order).unwrap().0;
    assert_eq!(found(), 0);
    disk.tamper(&path, Some(replaced));
    assert_eq!(found(), 1);
    let (stranger, _) = archive.new_order("DPO-2", &Subject::new(["nobody"]).unwrap(), BTreeSet::from([team()]));
    assert_eq!(archive.read(&team()).unwrap().unnamed_files_of_subject(&stranger).unwrap().0, 0);
    assert_eq!(archive.read(&team()).unwrap().rows_of_subject(&order).unwrap().0, []);
    assert_eq!(erase(&archive).unwrap().removed, 1);
    assert_eq!((found(), check_gone(&disk)), (0, Ok(())));
    // A file that cannot be searched may hold the subject.
    for path in ["scratch/abandoned", path.as_str()] {
        disk.tamper(path, Some(Bytes::from_static(b"x")));
        assert_eq!(found(), 1, "{path}");
        assert_eq!(erase(&archive).unwrap().removed, 1);
    }
}

/// A back-up program linked each file to a place outside the archive.
#[test]
fn an_order_removes_one_name_of_a_linked_file_and_names_the_file() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("archive");
    let archive = built(&(Arc::new(LocalStore::new(&place)) as Arc<dyn Store>));
    let files = || -> BTreeSet<String> { archive.read(&team()).unwrap().state().files.keys().cloned().collect() };
    let before = files();
    for (number, path) in before.iter().enumerate() {
        fs::hard_link(place.join(path), home.path().join(number.to_string())).unwrap();
    }
    let erasure = erase(&archive).unwrap();
    let after = files();
    let replaced: Vec<&String> = before.difference(&after).collect();
    assert!(!replaced.is_empty());
    for path in replaced {
        assert!(!place.join(path).try_exists().unwrap(), "{path}");
        let named = erasure.unerased.iter().find(|unerased| unerased.path == *path).expect(path);
        assert!(named.why.contains("hard links"), "{named:?}");
    }
    assert_eq!(check_gone(archive.store().as_ref()), Ok(()));
}

/// The hold is older than this team, so only another ledger records it, under the key of that ledger.
#[test]
fn a_hold_in_another_ledger_protects_rows_that_name_its_subject_by_another_value() {
    for (held, is_held) in [("ZOË", true), (EMAIL, true), ("nobody", false)] {
        let archive = open(&(Arc::new(MemoryStore::new()) as Arc<dyn Store>));
        let mut other = archive.writer(&TeamId::from("other")).unwrap();
        let subject = Some(other.salts().subject(held).unwrap());
        let _ = commit(&mut other, holding([HoldAdded { subject, ..hold("CASE-7", None, HoldScope::All) }])).unwrap();
        let seen_at = "2026-03-01T10:00:00Z";
        let draft = Draft {
            body: Body { inventory: vec![inventory::inventory_read(Computers, seen_at, 1)], ..Body::default() },
            inventory: vec![(Computers, vec![inventory::computer(EMAIL, seen_at, LOCAL)])],
            ..Draft::default()
        };
        let _ = commit(&mut writer(&archive), draft).unwrap();
        let subject = Subject::new([EMAIL]).unwrap();
        let (order, pending) = archive.new_order("DPO-1", &subject, BTreeSet::from([team()]));
        let expected: BTreeSet<String> = is_held.then(|| "CASE-7".to_owned()).into_iter().collect();
        assert_eq!(archive.holds_on_order(&team(), &order).unwrap(), expected, "{held}");
        assert_eq!(writer(&archive).erase(&order, &pending, now()).is_err(), is_held, "{held}");
    }
}

/// A broken text of quarantine has the order's subject as a word, so it can have any other subject as a word.
#[test]
fn a_hold_on_a_subject_protects_texts_that_are_not_json() {
    let archive = built(&(Arc::new(MemoryStore::new()) as Arc<dyn Store>));
    let mut writer = writer(&archive);
    let subject = Some(writer.salts().subject("c").unwrap());
    let _ = commit(&mut writer, holding([HoldAdded { subject, ..hold("CASE-7", None, HoldScope::Team) }])).unwrap();
    drop(writer);
    let (order, _) = new_order(&archive);
    assert_eq!(archive.holds_on_order(&team(), &order).unwrap(), BTreeSet::from(["CASE-7".to_owned()]));
    assert!(erase(&archive).unwrap_err().to_string().contains("hold CASE-7"));
}

#[test]
fn a_hold_of_the_whole_archive_in_another_ledger_stops_an_order() {
    let disk = MemoryStore::new();
    let archive = built(&(Arc::new(disk.clone()) as Arc<dyn Store>));
    let (order, pending) = new_order(&archive);
    let mut writer = writer(&archive);
    // The hold is added after the order began.
    let stranger = HoldAdded { subject: Some(Digest([1; 32])), ..hold("CASE-8", None, HoldScope::All) };
    let draft = holding([hold("CASE-7", None, HoldScope::All), stranger]);
    let _ = commit(&mut archive.writer(&TeamId::from("other")).unwrap(), draft).unwrap();
    let refused = writer.erase(&order, &pending, now().plus(HOUR)).unwrap_err().to_string();
    assert!(refused.contains("hold CASE-7"), "{refused}");
    assert!(check_gone(&disk).is_err());
    assert_clean(&disk);
    CURRENT.set(Some(Bug::HoldsForgotten));
    let erased = writer.erase(&order, &pending, now().plus(HOUR));
    CURRENT.set(None);
    let _ = erased.unwrap();
    let found = faults(&disk, FaultCode::PolicyViolation);
    assert!(
        !found.is_empty() && found.iter().all(|fault| fault.detail.contains("hold CASE-7 of the whole")),
        "{found:#?}"
    );
}

#[test]
fn a_hold_covers_a_state_that_began_before_the_hold() {
    for (from, is_held) in [("2026-03-10T00:00:00Z", true), ("2026-04-10T00:00:00Z", false)] {
        let disk = MemoryStore::new();
        let archive = open(&(Arc::new(disk.clone()) as Arc<dyn Store>));
        for (id, seen_at) in [(EMAIL, "2026-03-01T10:00:00Z"), ("d2", "2026-04-02T10:00:00Z")] {
            let draft = Draft {
                body: Body { inventory: vec![inventory::inventory_read(Computers, seen_at, 1)], ..Body::default() },
                inventory: vec![(Computers, vec![inventory::computer(id, seen_at, "one")])],
                ..Draft::default()
            };
            let _ = commit(&mut writer(&archive), draft).unwrap();
        }
        let _ = commit(&mut writer(&archive), holding([hold("CASE-7", Some(from), HoldScope::Team)])).unwrap();
        let (order, _) = new_order(&archive);
        let held: BTreeSet<String> = is_held.then(|| "CASE-7".to_owned()).into_iter().collect();
        assert_eq!(archive.holds_on_order(&team(), &order).unwrap(), held, "{from}");
        assert_eq!(erase(&archive).is_err(), is_held, "{from}");
        assert_eq!(check_gone(&disk).is_err(), is_held, "{from}");
        // The rule of the line itself says the same.
        CURRENT.set(Some(Bug::HoldsForgotten));
        let erased = erase(&archive);
        CURRENT.set(None);
        let _ = erased.unwrap();
        assert_eq!(!faults(&disk, FaultCode::PolicyViolation).is_empty(), is_held, "{from}");
    }
}

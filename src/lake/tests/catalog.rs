//! The catalog beside a slow store and damaged tables.

use std::sync::mpsc;

use parking_lot::Mutex;

use super::*;
use crate::archive::version_path;
use crate::store::{ListHookStore, put};

/// The longest wait for an answer that needs no store.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_slow_store_delays_only_the_request_that_reads_it() {
    let (disk, mut history) = history(14);
    (0..5).for_each(|_| history.step());
    publish(&history.archive).unwrap();
    let (entered, is_entered) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    // The hook waits at the gate until the test drops `open`.
    let (entered, gate) = (Mutex::new(entered), Mutex::new(gate));
    let is_slow = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let hook = {
        let is_slow = Arc::clone(&is_slow);
        move |directory: &str| {
            if directory.ends_with("metadata") && is_slow.load(std::sync::atomic::Ordering::SeqCst) {
                let _ = entered.lock().send(());
                let _ = gate.lock().recv();
            }
        }
    };
    let store = ListHookStore { inner: Arc::new(disk), hook: Box::new(hook) };
    let catalog = Arc::new(Catalog::new(Arc::new(Archive::open(Arc::new(store)).unwrap())));
    let known = catalog.load("connections", start()).unwrap();
    assert!(known.is_some());
    is_slow.store(true, std::sync::atomic::Ordering::SeqCst);
    let later = start().plus(Duration::from_secs(60));
    let looking = {
        let catalog = Arc::clone(&catalog);
        std::thread::spawn(move || catalog.load("connections", later).unwrap())
    };
    is_entered.recv_timeout(PATIENCE).expect("the first request looks at the store");
    let (answer, answers) = mpsc::channel();
    let asked = Arc::clone(&catalog);
    std::thread::spawn(move || {
        let is_current = asked.is_current(later);
        let _ = answer.send((is_current, asked.load("connections", later).unwrap()));
    });
    let (is_current, loaded) = answers.recv_timeout(PATIENCE).expect("an answer while another request looks");
    assert!(!is_current);
    assert_eq!(loaded, known);
    drop(open);
    assert_eq!(looking.join().unwrap(), known);
    assert!(catalog.is_current(later));
}

#[test]
fn a_damaged_table_stops_neither_publishing_nor_serving_the_others() {
    let (disk, mut history) = history(15);
    (0..5).for_each(|_| history.step());
    publish(&history.archive).unwrap();
    let archive = Arc::new(history.archive.clone());
    let catalog = Catalog::new(Arc::clone(&archive));
    let known = catalog.load("billing", start()).unwrap();
    assert!(known.is_some());
    put(&disk, &version_path("billing", 2), b"{}").unwrap();
    (0..20).for_each(|_| history.step());
    later(&disk, Duration::from_secs(900));
    let (published, ended) = Publisher::new(&history.archive, place()).publish_each(&TableId::all());
    let Err(LakeError::NotPublished { tables, all, source }) = ended else { panic!("{ended:?}") };
    assert_eq!((tables, all), (vec!["billing"], TableId::all().len()));
    assert!(matches!(*source, LakeError::Damaged { path, .. } if path == version_path("billing", 2)));
    assert_eq!(published.len(), TableId::all().len() - 1);
    assert!(published.iter().any(|table| table.table == "connections" && table.version == 2), "{published:?}");
    let later = start().plus(Duration::from_secs(60));
    // A running catalog keeps the version that it knows. A new one cannot serve the table.
    for (catalog, billing) in [(catalog, known), (Catalog::new(archive), None)] {
        let tables = catalog.tables(later).unwrap();
        assert_eq!(tables.contains(&"billing".to_owned()), billing.is_some(), "{tables:?}");
        assert!(tables.len() >= TableId::all().len() - 1, "{tables:?}");
        assert_eq!(catalog.load("billing", later).unwrap(), billing);
        let answer = catalog.load("connections", later).unwrap().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["metadata-location"], format!("{ADDRESS}/{}", version_path("connections", 2)));
    }
}

/// `publish --check` asks for this: the new table begins with version 1 again.
#[test]
fn a_table_that_was_deleted_and_published_again_is_served_anew() {
    let (disk, mut history) = history(16);
    (0..5).for_each(|_| history.step());
    publish(&history.archive).unwrap();
    let catalog = Catalog::new(Arc::new(history.archive.clone()));
    let snapshot_of = |answer: Option<bytes::Bytes>| {
        let answer: serde_json::Value = serde_json::from_slice(&answer.unwrap()).unwrap();
        answer["metadata"]["current-snapshot-id"].as_i64()
    };
    let newest = || Table::read(&disk, "connections").unwrap().unwrap();
    assert_eq!(snapshot_of(catalog.load("connections", start()).unwrap()), Some(newest().metadata.current_snapshot_id));
    for entry in disk.list("tables/connections/metadata").unwrap() {
        disk.remove(&[&entry.path]).unwrap();
    }
    later(&disk, Duration::from_secs(60));
    publish(&history.archive).unwrap();
    assert_eq!(newest().version, 1);
    let served = catalog.load("connections", start().plus(Duration::from_secs(60))).unwrap();
    assert_eq!(snapshot_of(served), Some(newest().metadata.current_snapshot_id));
}

//! The store of two places, over every pair of stores, compared with one store that holds everything.

use std::time::Duration;

use object_server::ObjectServer;
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::tests::conformance::{conforms, line};
use super::super::{LocalStore, MemoryStore, erase_all, get, if_there, put, s3};
use super::*;
use crate::model::path::TABLES;

/// A new place, opened twice, as by two processes.
type Place = fn(&mut Kept) -> [Arc<dyn Store>; 2];

/// What the places of one test need until its end.
#[derive(Default)]
struct Kept {
    directories: Vec<tempfile::TempDir>,
    servers: Vec<ObjectServer>,
}

fn memory(_: &mut Kept) -> [Arc<dyn Store>; 2] {
    let store = MemoryStore::new();
    [Arc::new(store.clone()), Arc::new(store)]
}

fn disk(kept: &mut Kept) -> [Arc<dyn Store>; 2] {
    kept.directories.push(tempfile::tempdir().unwrap());
    let root = kept.directories.last().unwrap().path();
    [Arc::new(LocalStore::new(root)), Arc::new(LocalStore::new(root))]
}

fn bucket(kept: &mut Kept) -> [Arc<dyn Store>; 2] {
    kept.servers.push(ObjectServer::start());
    let server = kept.servers.last().unwrap();
    [Arc::new(s3(server)), Arc::new(s3(server))]
}

#[test]
fn every_pair_of_places_conforms() {
    let pairs: [(Place, Place); 5] = [(memory, memory), (disk, disk), (disk, bucket), (bucket, disk), (bucket, bucket)];
    for (data, ledger) in pairs {
        let kept = std::cell::RefCell::new(Kept::default());
        conforms(|| {
            let [data, other_data] = data(&mut kept.borrow_mut());
            let [ledger, other_ledger] = ledger(&mut kept.borrow_mut());
            [Box::new(SplitStore::new(data, ledger)), Box::new(SplitStore::new(other_data, other_ledger))]
        });
    }
}

fn split() -> (MemoryStore, MemoryStore, SplitStore) {
    let (data, ledger) = (MemoryStore::new(), MemoryStore::new());
    let store = SplitStore::new(Arc::new(data.clone()), Arc::new(ledger.clone()));
    (data, ledger, store)
}

/// An operation on one of a few paths.
#[derive(Debug, Clone)]
enum Act {
    Put(usize, u8),
    Create(usize, u8),
    Append(usize, u8),
    Remove(usize, usize),
}

const PATHS: [&str; 7] = [
    "archive.json",
    "ledger",
    "ledger/archive.json",
    "ledger/team=a/2026-11-20.jsonl",
    "ledger/team=a/2026-11-20.heads",
    "ledgers/x",
    "tables/ledger/x",
];

fn act() -> impl Strategy<Value = Act> {
    let path = 0..PATHS.len();
    prop_oneof![
        (path.clone(), any::<u8>()).prop_map(|(path, byte)| Act::Put(path, byte)),
        (path.clone(), any::<u8>()).prop_map(|(path, byte)| Act::Create(path, byte)),
        (path.clone(), any::<u8>()).prop_map(|(path, byte)| Act::Append(path, byte)),
        (path.clone(), path).prop_map(|(one, two)| Act::Remove(one, two)),
    ]
}

fn perform(store: &dyn Store, act: &Act) -> Result<(), String> {
    let done = match act {
        Act::Put(path, byte) => put(store, PATHS[*path], &[*byte]),
        Act::Create(path, byte) => store.create_new(PATHS[*path], &[*byte]),
        Act::Append(path, byte) => {
            let keep = if_there(get(store, PATHS[*path])).unwrap().map_or(0, |found| found.len() as u64);
            store.append(PATHS[*path], Tail { keep, torn: 0 }, &[*byte])
        }
        Act::Remove(one, two) => store.remove(&[PATHS[*one], PATHS[*two]]),
    };
    done.map_err(|error| error.to_string())
}

proptest! {
    #[test]
    fn two_places_look_like_one(acts in vec(act(), 0..40)) {
        let (data, ledger, store) = split();
        let one = MemoryStore::new();
        for act in &acts {
            if matches!(act, Act::Put(path, _) if is_in_ledger(PATHS[*path])) {
                prop_assert!(perform(&store, act).unwrap_err().contains("never replaced"));
                continue;
            }
            prop_assert_eq!(perform(&store, act), perform(&one, act));
            for directory in ["", "ledger", "ledger/team=a", "ledgers", "tables"] {
                prop_assert_eq!(store.list(directory).unwrap(), one.list(directory).unwrap());
            }
        }
        for path in PATHS {
            prop_assert_eq!(if_there(get(&store, path)).unwrap(), if_there(get(&one, path)).unwrap());
        }
        prop_assert!(data.list("").unwrap().iter().all(|entry| !is_in_ledger(&entry.path)));
        prop_assert!(ledger.list("").unwrap().iter().all(|entry| is_in_ledger(&entry.path)));
    }
}

#[test]
fn the_clock_makes_no_file_older_than_it_is() {
    let (data, ledger, store) = split();
    let time = |seconds| Instant::from_seconds(seconds);
    for (of_data, of_ledger, earlier) in [(1_000, 1_000, 1_000), (1_000, 5_000, 1_000), (5_000, 1_000, 1_000)] {
        data.set_now(time(of_data));
        ledger.set_now(time(of_ledger));
        assert_eq!(store.now().unwrap(), time(earlier));
        put(&store, "tables/x", b"x").unwrap();
        store.append("ledger/team=a/2026-11-20.jsonl", Tail::default(), &line(20, "one")).unwrap();
        for entry in store.list("").unwrap() {
            assert_eq!(store.now().unwrap().since(entry.modified), Duration::ZERO, "{entry:?}");
        }
        ledger.remove(&["ledger/team=a/2026-11-20.jsonl"]).unwrap();
    }
}

#[test]
fn a_lock_is_held_in_both_places() {
    let (data, ledger, store) = split();
    let guard = store.lock("team=a").unwrap();
    assert!(data.lock("team=a").is_err() && ledger.lock("team=a").is_err());
    drop(guard);
    for place in [&data, &ledger] {
        let other = place.lock("team=a").unwrap();
        assert!(matches!(store.lock("team=a").err(), Some(StoreError::Locked { .. })));
        drop(other);
    }
    let _again = store.lock("team=a").unwrap();
}

#[test]
fn ledger_files_beside_the_data_are_named() {
    let (data, _, store) = split();
    put(&data, "ledger/team=a/2026-11-20.jsonl", b"a stray line\n").unwrap();
    assert_eq!(store.list("").unwrap(), []);
    let [found] = store.strays().unwrap().try_into().unwrap();
    assert_eq!(found.path, "ledger/team=a/2026-11-20.jsonl");
    assert!(found.what.contains("lies beside the data"), "{found:?}");
}

/// The search for rewritten lines reads the ledger's bucket, and an erasure deletes versions in the data's bucket.
#[test]
fn versions_and_uploads_belong_to_their_own_bucket() {
    let (data, ledger) = (ObjectServer::start(), ObjectServer::start());
    let store = SplitStore::new(Arc::new(s3(&data)), Arc::new(s3(&ledger)));
    data.keep_versions();
    ledger.keep_versions();
    put(&store, "tables/x", b"secret").unwrap();
    store.append("ledger/team=a/2026-11-20.jsonl", Tail::default(), &line(20, "one")).unwrap();
    let lines = store.bucket_of(LEDGER).unwrap();
    assert_eq!((lines.rewritten().unwrap(), lines.altered_parts().unwrap()), (vec![], vec![]));
    let key = ledger.keys().into_iter().find(|key| key.contains("/line/")).unwrap();
    ledger.tamper(&key, Some("another".into()));
    assert_eq!(lines.rewritten().unwrap().len(), 1);
    data.leave_upload("an/archive/tables/left.parquet");
    let files = store.bucket_of(TABLES).unwrap();
    let [upload] = files.unfinished_uploads().unwrap().try_into().unwrap();
    files.abort_upload(&upload).unwrap();
    assert_eq!(data.open_uploads(), 0);
    data.forget_requests();
    ledger.forget_requests();
    assert_eq!(erase_all(&store, &["tables/x"]).unwrap(), []);
    assert_eq!((data.versions("an/archive/tables"), ledger.requests()), (0, vec![]));
}

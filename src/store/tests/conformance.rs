//! The conformance suite, which every store must pass.

use std::io::{Read, Write};

use bytes::Bytes;

use super::super::*;
use crate::model::path::LOCK_OF_NEW;

fn put(store: &dyn Store, path: &str, content: &[u8]) {
    super::super::put(store, path, content).unwrap();
}

fn get(store: &dyn Store, path: &str) -> Option<Bytes> {
    match store.read(path) {
        Ok(blob) => Some(blob.to_bytes().unwrap()),
        Err(e) => {
            assert!(e.is_not_found(), "{e}");
            None
        }
    }
}

fn paths(store: &dyn Store, directory: &str) -> Vec<String> {
    store.list(directory).unwrap().into_iter().map(|entry| entry.path).collect()
}

fn a_file_has_no_name_before_it_is_finished(store: &dyn Store) {
    assert_eq!(get(store, "t/a"), None);
    let mut file = store.create().unwrap();
    file.write_all(b"01234").unwrap();
    file.write_all(b"56789").unwrap();
    assert_eq!((get(store, "t/a"), paths(store, "t")), (None, vec![]));
    file.finish("t/a").unwrap();
    let blob = store.read("t/a").unwrap();
    assert_eq!((blob.size(), blob.digest().unwrap()), (10, crate::model::Digest::of(b"0123456789")));
    let mut rest = String::new();
    blob.reader(7).read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "789");
    assert!(matches!(store.read("t").err(), Some(StoreError::NotFound { .. } | StoreError::Irregular { .. })));
    let mut dropped = store.create().unwrap();
    dropped.write_all(b"nothing").unwrap();
    drop(dropped);
    assert_eq!(paths(store, ""), ["t/a"]);
}

fn a_file_is_replaced_as_a_whole(store: &dyn Store) {
    put(store, "t/a", b"content");
    let before = store.read("t/a").unwrap();
    put(store, "t/a", b"more content");
    assert_eq!(get(store, "t/a"), Some("more content".into()));
    assert_eq!(before.to_bytes().unwrap(), "content", "a reader of the old file continues with it");
    let [listed] = store.list("t").unwrap().try_into().unwrap();
    let now = store.now().unwrap();
    let age = now.since(listed.modified).max(listed.modified.since(now));
    assert!(age < std::time::Duration::from_secs(600), "{age:?} by the store's own clock");
}

fn a_new_file_is_created_once(store: &dyn Store) {
    store.create_new("t/v9.json", b"one").unwrap();
    store.create_new("t/v10.json", b"two").unwrap();
    store.create_new("t/v9.json", b"one").expect("the answer to the first try may have been lost");
    let taken = store.create_new("t/v9.json", b"other").unwrap_err();
    assert!(matches!(&taken, StoreError::Conflict { path, expected: 0, found: 3 } if path == "t/v9.json"), "{taken}");
    assert_eq!((get(store, "t/v9.json"), get(store, "t/v10.json")), (Some("one".into()), Some("two".into())));
    let wins = std::thread::scope(|scope| {
        let create = |n: usize| move || store.create_new("t/race", format!("writer {n}").as_bytes()).is_ok();
        let writers: Vec<_> = (0..8).map(|n| scope.spawn(create(n))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(wins, 1, "of several writers one creates the file");
    assert_eq!(paths(store, "t"), ["t/race", "t/v10.json", "t/v9.json"], "and nothing else is left");
}

fn listing_is_deep_sorted_and_by_directory(store: &dyn Store) {
    for path in ["b/x=1/2", "b/x=1/1", "b/y", "bb/z"] {
        put(store, path, path.as_bytes());
    }
    assert_eq!(paths(store, "b"), ["b/x=1/1", "b/x=1/2", "b/y"]);
    assert_eq!(paths(store, "nowhere"), Vec::<String>::new());
    let [listed] = store.list("bb").unwrap().try_into().unwrap();
    assert_eq!((listed.path.as_str(), listed.bytes, listed.irregular), ("bb/z", 4, None));
    let _guard = store.lock("listed").unwrap();
    assert_eq!(paths(store, ""), ["b/x=1/1", "b/x=1/2", "b/y", "bb/z"]);
}

fn removing_may_be_repeated(store: &dyn Store) {
    for path in ["d/t=1/a=1/1", "d/t=1/a=2/2", "d/t=1/a=2/3"] {
        put(store, path, path.as_bytes());
    }
    for _ in 0..2 {
        store.remove(&["d/t=1/a=1/1"]).unwrap();
        assert_eq!(paths(store, ""), ["d/t=1/a=2/2", "d/t=1/a=2/3"]);
    }
    for _ in 0..2 {
        store.remove(&["d/t=1/a=1/1", "d/t=1/a=2/3"]).unwrap();
        assert_eq!(paths(store, ""), ["d/t=1/a=2/2"]);
    }
    store.remove(&[]).unwrap();
    erase_all(store, &["d/t=1/a=2/2"]).unwrap();
    assert_eq!(paths(store, ""), Vec::<String>::new());
}

/// A line like those of ledgers: some stores parse its day.
pub fn line(day: u32, text: &str) -> Vec<u8> {
    format!("{{\"at\":\"2026-11-{day}T12:00:00Z\",\"text\":\"{text}\"}}\n").into_bytes()
}

fn at(keep: u64, torn: u64) -> Tail {
    Tail { keep, torn }
}

fn appending_knows_the_end_it_appends_to(store: &dyn Store) {
    let path = "ledger/team=a/2026-11-20.jsonl";
    let (one, two) = (line(20, "one"), line(20, "two"));
    let (first, both) = (one.len() as u64, (one.len() + two.len()) as u64);
    store.append(path, at(0, 0), &one).unwrap();
    store.append(path, at(first, 0), &two).unwrap();
    store.append(path, at(first, 0), &two).unwrap();
    let held = Bytes::from([one, two].concat());
    assert_eq!(get(store, path), Some(held.clone()));
    for tail in [at(0, 0), at(first, 0), at(both + 1, 0), at(both, 1), at(2, 1)] {
        let error = store.append(path, tail, &line(20, "six")).unwrap_err();
        let StoreError::Conflict { expected, found, .. } = error else { panic!("{tail:?}: {error}") };
        assert!(error.is_undone() && expected == tail.keep + tail.torn && found == both, "{tail:?}: {error}");
        assert_eq!(get(store, path), Some(held.clone()));
    }
    let missing = store.append("ledger/team=b/2026-11-20.jsonl", at(3, 0), &line(20, "one")).unwrap_err();
    assert!(matches!(missing, StoreError::Conflict { found: 0, expected: 3, .. }), "{missing}");
}

/// For stores whose appends can be interrupted in the middle.
fn what_an_interrupted_append_left_is_cut_off(store: &dyn Store) {
    let path = "ledger/team=a/2026-11-20.jsonl";
    store.append(path, at(0, 0), b"one\ntwo\n").unwrap();
    store.append(path, at(8, 0), b"thr").unwrap();
    store.append(path, at(8, 3), b"").unwrap();
    assert_eq!(get(store, path), Some("one\ntwo\n".into()));
    store.append(path, at(8, 0), b"th").unwrap();
    store.append(path, at(8, 2), b"three\n").unwrap();
    assert_eq!(get(store, path), Some("one\ntwo\nthree\n".into()));
}

fn an_append_is_refused_where_a_later_day_has_begun(store: &dyn Store) {
    let day = |day: u32| format!("ledger/team=a/2026-11-{day}.jsonl");
    let [one, two, three] = [line(20, "one"), line(21, "two"), line(21, "three")];
    let begun = one.len() as u64;
    store.append(&day(20), Tail::default(), &one).unwrap();
    store.append(&day(21), Tail::default(), &two).unwrap();
    for (keep, bytes) in [(begun, line(20, "three")), (0, one.clone()), (begun, vec![])] {
        let refused = store.append(&day(20), at(keep, 0), &bytes).unwrap_err();
        let StoreError::Later { later, .. } = &refused else { panic!("{refused}") };
        assert!(refused.is_undone() && refused.is_fenced() && *later == day(21), "{refused}");
    }
    assert!(matches!(store.append(&day(19), Tail::default(), &line(19, "x")), Err(StoreError::Later { .. })));
    store.append(&day(21), at(two.len() as u64, 0), &three).unwrap();
    store.append("ledger/team=b/2026-11-20.jsonl", Tail::default(), &line(20, "of another team")).unwrap();
    store.append("ledger/team=a/2026-11-20.heads", Tail::default(), b"of another kind\n").unwrap();
    assert_eq!((get(store, &day(20)), get(store, &day(21))), (Some(one.into()), Some([two, three].concat().into())));
}

/// A list shows the present to every caller: writers find the ledger's end by it. `other` is the store in another process.
fn a_list_is_never_stale(store: &dyn Store, other: &dyn Store) {
    let both_list = |lengths: &[(&str, usize)]| {
        for hand in [store, other] {
            let listed: Vec<(String, u64)> =
                hand.list("").unwrap().into_iter().map(|entry| (entry.path, entry.bytes)).collect();
            assert_eq!(
                listed,
                lengths.iter().map(|(path, bytes)| ((*path).to_owned(), *bytes as u64)).collect::<Vec<_>>()
            );
        }
    };
    let (day, later) = ("ledger/team=1/2026-11-20.jsonl", "ledger/team=1/2026-11-21.jsonl");
    let (one, two, three) = (line(20, "one"), line(20, "and two"), line(21, "three"));
    both_list(&[]);
    put(store, "t/t=1/b", b"12345");
    both_list(&[("t/t=1/b", 5)]);
    store.append(day, Tail::default(), &one).unwrap();
    both_list(&[(day, one.len()), ("t/t=1/b", 5)]);
    other.append(day, at(one.len() as u64, 0), &two).unwrap();
    both_list(&[(day, one.len() + two.len()), ("t/t=1/b", 5)]);
    put(other, "t/t=2/c", b"1");
    store.append(later, Tail::default(), &three).unwrap();
    both_list(&[(day, one.len() + two.len()), (later, three.len()), ("t/t=1/b", 5), ("t/t=2/c", 1)]);
    for path in ["t/t=1/b", "t/t=2/c"] {
        other.remove(&[path]).unwrap();
    }
    both_list(&[(day, one.len() + two.len()), (later, three.len())]);
}

fn a_lock_has_one_holder(store: &dyn Store) {
    let guard = store.lock("team=a").unwrap();
    assert!(matches!(store.lock("team=a").err(), Some(StoreError::Locked { .. })));
    let other = store.lock("team=b").unwrap();
    drop(guard);
    let _again = store.lock("team=a").unwrap();
    drop(other);
}

/// `make` opens one new store twice, like two processes.
pub fn conforms(make: impl Fn() -> [Box<dyn Store>; 2]) {
    for check in [
        a_file_has_no_name_before_it_is_finished,
        a_file_is_replaced_as_a_whole,
        a_new_file_is_created_once,
        listing_is_deep_sorted_and_by_directory,
        removing_may_be_repeated,
        appending_knows_the_end_it_appends_to,
        an_append_is_refused_where_a_later_day_has_begun,
        a_lock_has_one_holder,
    ] {
        check(make()[0].as_ref());
    }
    let [store, other] = make();
    a_list_is_never_stale(store.as_ref(), other.as_ref());
}

#[test]
fn the_store_in_memory_conforms() {
    conforms(|| {
        let store = MemoryStore::new();
        [Box::new(store.clone()), Box::new(store)]
    });
    what_an_interrupted_append_left_is_cut_off(&MemoryStore::new());
}

#[test]
fn the_store_on_disk_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let number = std::cell::Cell::new(0);
    conforms(|| {
        number.set(number.get() + 1);
        let root = directory.path().join(number.get().to_string());
        std::fs::create_dir(&root).unwrap();
        [Box::new(LocalStore::new(&root)), Box::new(LocalStore::new(&root))]
    });
    let torn = directory.path().join("torn");
    std::fs::create_dir(&torn).unwrap();
    what_an_interrupted_append_left_is_cut_off(&LocalStore::new(torn));
}

#[test]
fn only_the_lock_of_a_new_archive_creates_a_missing_directory() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("above").join("archive");
    let store = LocalStore::new(&root);
    assert!(store.lock("team=a").is_err() && store.create().is_err() && store.create_new("f", b"x").is_err());
    assert!(store.append("l", Tail::default(), b"x").is_err_and(|error| error.is_undone()));
    assert!(!directory.path().join("above").try_exists().unwrap());
    let _guard = store.lock(LOCK_OF_NEW).unwrap();
    put(&store, "f", b"x");
}

#[test]
fn a_faulty_store_that_never_fails_conforms() {
    conforms(|| {
        let inner = Arc::new(MemoryStore::new());
        let hand = || FaultyStore::new(inner.clone(), u64::MAX, false, Fault::Failed);
        [Box::new(hand()), Box::new(hand())]
    });
}

#[test]
fn disk_errors_name_the_operation_and_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    put(&store, "taken", b"a file where a directory should be");
    for error in [
        store.create().unwrap().finish("taken/f").unwrap_err(),
        store.append("taken/f", Tail::default(), b"x").unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.starts_with("cannot ") && text.contains("taken/f"), "{text}");
    }
    // A directory that cannot be listed is an error; a directory that does not exist is empty.
    assert!(store.list("taken").is_err());
    assert_eq!(store.list("elsewhere").unwrap(), []);
}

/// The largest file that a disk can hold: an append to it starts and runs out of space.
fn largest(file: &std::fs::File) -> u64 {
    let (mut fits, mut too_large) = (0, 1 << 63);
    while too_large - fits > 1 {
        let length = fits + (too_large - fits) / 2;
        if file.set_len(length).is_ok() { fits = length } else { too_large = length }
    }
    fits
}

#[test]
fn an_append_without_space_removes_its_own_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    let file = std::fs::File::create(directory.path().join("l")).unwrap();
    let keep = largest(&file) - 2;
    for torn in [0, 1] {
        file.set_len(keep + torn).unwrap();
        let error = store.append("l", Tail { keep, torn }, b"a line\n").unwrap_err();
        assert!(matches!(&error, StoreError::Io { verb: Verb::Append, path, .. } if path == "l"), "{error}");
        assert_eq!(file.metadata().unwrap().len(), keep, "the append removes its own bytes and the torn ones");
        assert_eq!(error.is_undone(), torn == 0, "{error}");
    }
}

#[test]
fn empty_directories_of_a_team_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    put(&store, "tables/d/team=a/month=1/f", b"x");
    store.remove(&["tables/d/team=a/month=1/f"]).unwrap();
    assert!(!directory.path().join("tables/d/team=a").try_exists().unwrap());
    assert!(directory.path().join("tables/d").try_exists().unwrap());
}

#[test]
fn a_list_shows_the_modification_times() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    put(&store, "t/old", b"x");
    let age = std::time::Duration::from_secs(10 * 86_400);
    let file = std::fs::File::options().write(true).open(directory.path().join("t/old")).unwrap();
    let written = file.metadata().unwrap().modified().unwrap();
    file.set_modified(written - age).unwrap();
    let [listed] = store.list("t").unwrap().try_into().unwrap();
    let aged = store.now().unwrap().since(listed.modified);
    assert!(aged >= age && aged < age + age, "{aged:?}");
    store.append("l/1.jsonl", Tail::default(), b"line\n").unwrap();
    let file = std::fs::File::options().write(true).open(directory.path().join("l/1.jsonl")).unwrap();
    file.set_modified(written - age).unwrap();
    store.append("l/1.jsonl", Tail::default(), b"line\n").unwrap();
    let [listed] = store.list("l").unwrap().try_into().unwrap();
    assert!(store.now().unwrap().since(listed.modified) >= age, "an append that changes nothing keeps the time");
}

//! What every store must do, in one suite for all of them.

use std::io::{Read, Write};

use bytes::Bytes;

use super::*;

fn put(store: &dyn Store, path: &str, content: &[u8]) {
    let mut file = store.create(path).unwrap();
    file.write_all(content).unwrap();
    file.finish().unwrap();
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

fn files_are_written_once_and_read_anywhere(store: &dyn Store) {
    assert_eq!(get(store, "staging/a"), None);
    put(store, "staging/a", b"0123456789");
    let blob = store.read("staging/a").unwrap();
    assert_eq!((blob.size(), blob.digest().unwrap()), (10, crate::model::Digest::of(b"0123456789")));
    let mut rest = String::new();
    blob.reader(7).read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "789");
    assert!(matches!(store.create("staging/a").err(), Some(StoreError::Exists { .. })));
    assert!(matches!(store.read("staging").err(), Some(StoreError::NotFound { .. } | StoreError::Irregular { .. })));
    store.remove("staging/a").unwrap();
}

fn listing_is_deep_sorted_and_by_directory(store: &dyn Store) {
    for path in ["b/x=1/2", "b/x=1/1", "b/y", "bb/z"] {
        put(store, path, path.as_bytes());
    }
    assert_eq!(paths(store, "b"), ["b/x=1/1", "b/x=1/2", "b/y"]);
    assert_eq!(paths(store, "nowhere"), Vec::<String>::new());
    assert_eq!(store.list("bb").unwrap(), [Listed { path: "bb/z".to_owned(), bytes: 4, irregular: None }]);
    let _guard = store.lock("listed").unwrap();
    assert_eq!(paths(store, ""), ["b/x=1/1", "b/x=1/2", "b/y", "bb/z"]);
}

fn publishing_and_removing_may_be_repeated(store: &dyn Store) {
    put(store, "staging/t=1/f", b"content");
    for _ in 0..2 {
        store.publish("staging/t=1/f", "tables/d/t=1/f").unwrap();
        assert_eq!((get(store, "staging/t=1/f"), get(store, "tables/d/t=1/f")), (None, Some("content".into())));
    }
    put(store, "staging/t=1/f", b"again");
    store.publish("staging/t=1/f", "tables/d/t=1/f").unwrap();
    assert_eq!(get(store, "tables/d/t=1/f"), Some("again".into()));
    let missing = store.publish("staging/t=1/no", "tables/d/t=1/no").unwrap_err();
    assert!(missing.is_not_found() && missing.to_string().contains("tables/d/t=1/no"), "{missing}");
    for _ in 0..2 {
        store.remove("tables/d/t=1/f").unwrap();
        assert_eq!(get(store, "tables/d/t=1/f"), None);
    }
}

fn several_are_published_and_removed_at_once(store: &dyn Store) {
    let moves = [("s/t=1/1", "d/t=1/a=1/1"), ("s/t=1/2", "d/t=1/a=2/2"), ("s/t=1/3", "d/t=1/a=2/3")];
    let staged: Vec<&str> = moves.iter().map(|(from, _)| *from).collect();
    let placed: Vec<&str> = moves.iter().map(|(_, to)| *to).collect();
    for path in &staged[..2] {
        put(store, path, path.as_bytes());
    }
    let missing = store.publish_all(&moves).unwrap_err();
    assert!(missing.is_not_found() && missing.to_string().contains(placed[2]), "{missing}");
    put(store, staged[2], staged[2].as_bytes());
    for _ in 0..2 {
        store.publish_all(&moves).unwrap();
        let found = moves.map(|(from, to)| (get(store, from), get(store, to)));
        assert_eq!(found, moves.map(|(from, _)| (None, Some(Bytes::from(from)))));
    }
    store.publish_all(&[]).unwrap();
    for _ in 0..2 {
        store.remove_all(&placed[..2]).unwrap();
        assert_eq!(paths(store, ""), [placed[2]]);
    }
    store.remove_all(&placed).unwrap();
    store.remove_all(&[]).unwrap();
    assert_eq!(paths(store, ""), Vec::<String>::new());
}

fn appending_knows_the_end_it_appends_to(store: &dyn Store) {
    let path = "ledger/l";
    let at = |keep, torn| Tail { keep, torn };
    store.append(path, at(0, 0), b"one\n").unwrap();
    store.append(path, at(4, 0), b"two\n").unwrap();
    store.append(path, at(4, 0), b"two\n").unwrap();
    assert_eq!(get(store, path), Some("one\ntwo\n".into()));
    for (tail, bytes) in [(at(0, 0), "new\n"), (at(4, 0), "six\n"), (at(9, 0), "x"), (at(8, 1), "x"), (at(2, 1), "x")] {
        let error = store.append(path, tail, bytes.as_bytes()).unwrap_err();
        let StoreError::Conflict { expected, found: 8, .. } = error else { panic!("{tail:?} {bytes}: {error}") };
        assert!(error.is_undone() && expected == tail.keep + tail.torn, "{tail:?} {bytes}: {error}");
        assert_eq!(get(store, path), Some("one\ntwo\n".into()));
    }
    store.append(path, at(8, 0), b"thr").unwrap();
    store.append(path, at(8, 3), b"").unwrap();
    assert_eq!(get(store, path), Some("one\ntwo\n".into()));
    store.append(path, at(8, 0), b"th").unwrap();
    store.append(path, at(8, 2), b"three\n").unwrap();
    assert_eq!(get(store, path), Some("one\ntwo\nthree\n".into()));
    let missing = store.append("ledger/none", at(3, 0), b"x").unwrap_err();
    assert!(matches!(missing, StoreError::Conflict { found: 0, expected: 3, .. }), "{missing}");
}

/// Lists are of this moment, for whoever asks: the ledger's end is found by them. `other` is another process's hand.
fn a_list_is_never_behind(store: &dyn Store, other: &dyn Store) {
    let told = |lengths: &[(&str, u64)]| {
        for hand in [store, other] {
            let listed: Vec<(String, u64)> =
                hand.list("l").unwrap().into_iter().map(|entry| (entry.path, entry.bytes)).collect();
            assert_eq!(listed, lengths.iter().map(|(path, bytes)| ((*path).to_owned(), *bytes)).collect::<Vec<_>>());
        }
    };
    told(&[]);
    put(store, "s/1", b"12345");
    store.publish("s/1", "l/t=1/b").unwrap();
    told(&[("l/t=1/b", 5)]);
    store.append("l/t=1/a", Tail::default(), b"one\n").unwrap();
    told(&[("l/t=1/a", 4), ("l/t=1/b", 5)]);
    other.append("l/t=1/a", Tail { keep: 4, torn: 0 }, b"two\n").unwrap();
    told(&[("l/t=1/a", 8), ("l/t=1/b", 5)]);
    put(other, "l/t=2/c", b"1");
    store.append("l/t=1/a", Tail { keep: 4, torn: 4 }, b"").unwrap();
    told(&[("l/t=1/a", 4), ("l/t=1/b", 5), ("l/t=2/c", 1)]);
    for path in ["l/t=1/b", "l/t=1/a", "l/t=2/c"] {
        other.remove(path).unwrap();
    }
    told(&[]);
}

fn a_lock_has_one_holder(store: &dyn Store) {
    let guard = store.lock("team=a").unwrap();
    assert!(matches!(store.lock("team=a").err(), Some(StoreError::Locked { .. })));
    let other = store.lock("team=b").unwrap();
    drop(guard);
    let _again = store.lock("team=a").unwrap();
    drop(other);
}

/// `make` gives two hands on one new store, as two processes have them.
fn conforms(make: impl Fn() -> [Box<dyn Store>; 2]) {
    for check in [
        files_are_written_once_and_read_anywhere,
        listing_is_deep_sorted_and_by_directory,
        publishing_and_removing_may_be_repeated,
        several_are_published_and_removed_at_once,
        appending_knows_the_end_it_appends_to,
        a_lock_has_one_holder,
    ] {
        check(make()[0].as_ref());
    }
    let [store, other] = make();
    a_list_is_never_behind(store.as_ref(), other.as_ref());
}

#[test]
fn the_store_in_memory_conforms() {
    conforms(|| {
        let store = MemoryStore::new();
        [Box::new(store.clone()), Box::new(store)]
    });
}

#[test]
fn the_store_on_disk_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let number = std::cell::Cell::new(0);
    conforms(|| {
        number.set(number.get() + 1);
        let root = directory.path().join(number.get().to_string()).join("archive");
        [Box::new(LocalStore::new(&root)), Box::new(LocalStore::new(&root))]
    });
}

#[test]
fn a_faulty_store_that_never_fails_conforms() {
    conforms(|| {
        let inner = std::sync::Arc::new(MemoryStore::new());
        let hand = || FaultyStore::new(inner.clone(), u64::MAX, false, Fault::Failed);
        [Box::new(hand()), Box::new(hand())]
    });
}

#[test]
fn the_disk_says_what_it_could_not_do_and_where() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    put(&store, "staging", b"a file where a directory should be");
    put(&store, "x", b"x");
    for error in [
        store.publish_all(&[("x", "y"), ("y", "staging/f")]).unwrap_err(),
        store.create("staging/f").err().unwrap(),
        store.publish("x", "staging/f").unwrap_err(),
        store.append("staging/f", Tail::default(), b"x").unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.starts_with("cannot ") && text.contains("staging/f"), "{text}");
    }
    // What cannot be listed is not taken for empty; what is not there is.
    assert!(store.list("staging").is_err());
    assert_eq!(store.list("elsewhere").unwrap(), []);
}

/// The largest file that a disk can hold: an append to it begins and finds no room.
fn largest(file: &std::fs::File) -> u64 {
    let (mut fits, mut too_large) = (0, 1 << 63);
    while too_large - fits > 1 {
        let length = fits + (too_large - fits) / 2;
        if file.set_len(length).is_ok() { fits = length } else { too_large = length }
    }
    fits
}

#[test]
fn an_append_that_finds_no_room_leaves_nothing_of_itself() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    let file = std::fs::File::create(directory.path().join("l")).unwrap();
    let keep = largest(&file) - 2;
    for torn in [0, 1] {
        file.set_len(keep + torn).unwrap();
        let error = store.append("l", Tail { keep, torn }, b"a line\n").unwrap_err();
        assert!(matches!(&error, StoreError::Io { verb: Verb::Append, path, .. } if path == "l"), "{error}");
        assert_eq!(file.metadata().unwrap().len(), keep, "what was written of it went, and what was torn before");
        assert_eq!(error.is_undone(), torn == 0, "{error}");
    }
}

#[test]
fn directories_of_a_team_that_became_empty_go() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    put(&store, "staging/team=a/1-0.parquet", b"x");
    store.publish("staging/team=a/1-0.parquet", "tables/d/team=a/month=1/f").unwrap();
    assert!(!directory.path().join("staging/team=a").try_exists().unwrap());
    store.remove("tables/d/team=a/month=1/f").unwrap();
    assert!(!directory.path().join("tables/d/team=a").try_exists().unwrap());
    assert!(directory.path().join("tables/d").try_exists().unwrap());
}

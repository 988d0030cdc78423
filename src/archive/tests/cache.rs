//! The cache of files from a bucket: exact, bounded, shared, and safe against kills.

use std::path::Path;

use crate::store::{FaultyStore, MemoryStore};

use super::super::{Cache, CacheError, FileEntry};
use super::*;

const PLENTY: u64 = 1 << 30;

/// An archive with its live files, and a store that counts operations.
fn archive() -> (MemoryStore, Vec<FileEntry>, FaultyStore) {
    let disk = MemoryStore::new();
    let store: Arc<dyn Store> = Arc::new(disk.clone());
    let archive = committed(&store);
    let files = archive.read(&team()).unwrap().state().files.values().cloned().collect();
    let counting = FaultyStore::new(store, u64::MAX, false, crate::store::Fault::Failed);
    (disk, files, counting)
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    names.sort();
    names
}

#[test]
fn a_file_is_fetched_once_and_pinned_unchanged() {
    let (disk, files, counting) = archive();
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::new(place.path().join("cache"), PLENTY);
    for round in 0..3 {
        // Another process of the machine.
        let cache = cache.clone();
        let pinned = cache.pin(&counting, &files).unwrap();
        assert_eq!(counting.verbs(), files.len() as u64, "round {round}: each is read once");
        for file in &files {
            let read = std::fs::read(pinned.path_of(file)).unwrap();
            assert_eq!(read, disk.read(&file.path).unwrap().to_bytes().unwrap(), "{}", file.path);
        }
        let directory = pinned.directory().to_owned();
        drop(pinned);
        assert!(!directory.try_exists().unwrap(), "the pins end with their query");
    }
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let extent = cache.extent().unwrap();
    assert_eq!((extent.files, extent.bytes), (files.len() as u64, bytes));
}

#[test]
fn a_file_that_differs_from_the_ledger_is_not_cached() {
    let (disk, files, counting) = archive();
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::new(place.path(), PLENTY);
    let whole = disk.read(&files[0].path).unwrap().to_bytes().unwrap();
    let mut flipped = whole.to_vec();
    flipped[40] ^= 1;
    for (case, content) in
        [("a bit", Some(Bytes::from(flipped))), ("cut", Some(whole.slice(..whole.len() - 1))), ("gone", None)]
    {
        disk.tamper(&files[0].path, content);
        let error = cache.pin(&counting, &files[..1]).unwrap_err();
        assert!(
            matches!(error, CacheError::Archive(_)) && error.to_string().contains(&files[0].path),
            "{case}: {error}"
        );
        assert_eq!(cache.extent().unwrap().files, 0, "{case}");
    }
    disk.tamper(&files[0].path, Some(whole));
    let _ = cache.pin(&counting, &files[..1]).unwrap();
}

#[test]
fn the_cache_is_bounded_and_evicts_the_least_recently_used_file() {
    let (_, files, counting) = archive();
    let place = tempfile::tempdir().unwrap();
    let all: u64 = files.iter().map(|file| file.bytes).sum();
    let small = Cache::new(place.path(), all - 1);
    let error = small.pin(&counting, &files).unwrap_err();
    let CacheError::TooSmall { needed, limit } = error else { panic!("{error}") };
    assert_eq!((needed, limit, counting.verbs()), (all, all - 1, 0), "no file is fetched before the refusal");
    // Each file is pinned alone; the first is used again and again, so it remains.
    let first = &files[..1];
    let room = files[0].bytes + files[1..].iter().map(|file| file.bytes).max().unwrap();
    let cache = Cache::new(place.path(), room);
    for file in &files[1..] {
        let _ = cache.pin(&counting, std::slice::from_ref(file)).unwrap();
        let _ = cache.pin(&counting, first).unwrap();
        assert!(cache.extent().unwrap().bytes <= room);
    }
    let before = counting.verbs();
    let _ = cache.pin(&counting, first).unwrap();
    assert_eq!(counting.verbs(), before, "a used file stays in the cache");
}

#[test]
fn a_query_keeps_its_pinned_files() {
    let (_, files, counting) = archive();
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::new(place.path(), PLENTY);
    let pinned = cache.pin(&counting, &files).unwrap();
    assert_eq!(cache.clear().unwrap().files, files.len() as u64);
    assert_eq!(cache.extent().unwrap().files, 0);
    assert!(files.iter().all(|file| std::fs::metadata(pinned.path_of(file)).unwrap().len() == file.bytes));
    // Other processes use the cache meanwhile; the pinned files remain.
    let _ = cache.pin(&counting, &files).unwrap();
    assert!(files.iter().all(|file| std::fs::metadata(pinned.path_of(file)).unwrap().len() == file.bytes));
}

/// The remains of a killed process: links without a lock, and a file that was fetched in part.
#[test]
fn remains_of_a_killed_process_are_removed() {
    let (_, files, counting) = archive();
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::new(place.path(), PLENTY);
    let _ = cache.pin(&counting, &files[..1]).unwrap();
    let pinned = place.path().join("pins/pin-dead");
    std::fs::create_dir_all(&pinned).unwrap();
    std::fs::hard_link(place.path().join("files").join(&names(&place.path().join("files"))[0]), pinned.join("x"))
        .unwrap();
    drop(std::fs::File::create(pinned.join("lock")).unwrap());
    let _ = cache.pin(&counting, &files).unwrap();
    assert_eq!(names(&place.path().join("pins")), Vec::<String>::new());
}

#[test]
fn concurrent_fetches_of_a_file_all_succeed() {
    let (disk, files, _) = archive();
    let place = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let cache = Cache::new(place.path(), PLENTY);
                for _ in 0..5 {
                    let pinned = cache.pin(&disk, &files).unwrap();
                    for file in &files {
                        assert_eq!(std::fs::metadata(pinned.path_of(file)).unwrap().len(), file.bytes);
                    }
                    let _ = cache.clear().unwrap();
                }
            });
        }
    });
}

/// A full disk or a loss of power cut a cached file short.
#[test]
fn a_cached_file_of_another_length_is_fetched_again() {
    let (disk, files, counting) = archive();
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::new(place.path(), PLENTY);
    let whole = disk.read(&files[0].path).unwrap().to_bytes().unwrap();
    drop(cache.pin(&counting, &files[..1]).unwrap());
    let cached = cache.files_directory().join(&names(&cache.files_directory())[0]);
    for length in [0, files[0].bytes / 2, files[0].bytes + 1] {
        std::fs::File::options().write(true).open(&cached).unwrap().set_len(length).unwrap();
        let pinned = cache.pin(&counting, &files[..1]).unwrap();
        assert_eq!(std::fs::read(pinned.path_of(&files[0])).unwrap(), whole, "{length}");
        assert_eq!(std::fs::read(&cached).unwrap(), whole, "{length}");
    }
    assert_eq!(counting.verbs(), 4, "one read, and one after each damage");
}

/// A disk altered a cached file, and left its length.
#[test]
fn evidence_reads_an_altered_cached_file_again() {
    let (disk, files, counting) = archive();
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::new(place.path(), PLENTY).checking();
    let whole = disk.read(&files[0].path).unwrap().to_bytes().unwrap();
    drop(cache.pin(&counting, &files[..1]).unwrap());
    let cached = cache.files_directory().join(&names(&cache.files_directory())[0]);
    let mut altered = whole.to_vec();
    altered[40] ^= 1;
    std::io::Write::write_all(&mut std::fs::File::create(&cached).unwrap(), &altered).unwrap();
    let pinned = cache.pin(&counting, &files[..1]).unwrap();
    assert_eq!(std::fs::read(pinned.path_of(&files[0])).unwrap(), whole);
    assert_eq!(std::fs::read(&cached).unwrap(), whole);
    drop(cache.pin(&counting, &files[..1]).unwrap());
    assert_eq!(counting.verbs(), 2, "one read, and one after the damage");
}

/// A careless `[cache] directory` can hold other files, and one command must not take them.
#[test]
fn only_files_with_names_of_the_cache_are_counted_and_removed() {
    let (_, files, counting) = archive();
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::new(place.path(), PLENTY);
    let _ = cache.pin(&counting, &files).unwrap();
    let digest = "0".repeat(64);
    let foreign = [format!("{digest}.txt"), "a.object".to_owned(), "notes".to_owned(), "thesis.parquet".to_owned()];
    for name in foreign.iter().chain(&[format!("{digest}.object"), ".tmpAbC123".to_owned()]) {
        std::fs::File::create(cache.files_directory().join(name)).unwrap().set_len(9).unwrap();
    }
    std::fs::File::create(place.path().join("lock")).unwrap().set_len(9).unwrap();
    assert_eq!(cache.extent().unwrap().files, files.len() as u64 + 2);
    let _ = Cache::new(place.path(), files[0].bytes).pin(&counting, &files[..1]).unwrap();
    assert!(cache.extent().unwrap().bytes <= files[0].bytes);
    let _ = cache.clear().unwrap();
    assert_eq!(names(&cache.files_directory()), foreign);
    assert_eq!(std::fs::metadata(place.path().join("lock")).unwrap().len(), 9);
}

//! Tests of the local store with links, pipes, locks and a failing disk.

use super::*;

#[cfg(target_os = "linux")]
#[test]
fn a_failed_append_that_cannot_be_removed_is_reported_as_such() {
    let full = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
    let error = append_to(&full, "full", Tail::default(), b"a line\n").unwrap_err();
    assert!(matches!(&error, StoreError::Io { verb: Verb::Append, .. }) && !error.is_undone(), "{error}");
}

/// After a failed sync, the memory can hold bytes that the disk lacks, and another sync of them would write nothing.
#[test]
fn a_repeated_append_writes_again_and_keeps_the_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all_at(b"one\ntwo\n", 0).unwrap();
    let old = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    file.set_modified(old).unwrap();
    let tail = Tail { keep: 4, torn: 0 };
    let for_reading = File::open(&path).unwrap();
    let error = append_to(&for_reading, "x", tail, b"two\n").unwrap_err();
    assert!(matches!(&error, StoreError::Io { verb: Verb::Append, .. }) && !error.is_undone(), "{error}");
    append_to(&file, "x", tail, b"two\n").unwrap();
    assert_eq!((fs::read(&path).unwrap(), file.metadata().unwrap().modified().unwrap()), (b"one\ntwo\n".to_vec(), old));
}

#[test]
fn no_operation_follows_a_link_or_blocks_on_a_pipe() {
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = LocalStore::new(directory.path());
    std::os::unix::fs::symlink(elsewhere.path(), directory.path().join("linked")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("file"), directory.path().join("link.l")).unwrap();
    fs::create_dir(directory.path().join("locks")).unwrap();
    for pipe in ["pipe.p", "locks/team=a.lock"] {
        let made = std::process::Command::new("mkfifo").arg(directory.path().join(pipe)).status().unwrap();
        assert!(made.success());
    }
    store.append("plain", Tail::default(), b"x").unwrap();
    fs::create_dir(elsewhere.path().join("below")).unwrap();
    let kept = elsewhere.path().join("below/kept");
    let _ = File::create(&kept).unwrap();
    for (case, refused) in [
        ("list of a link", store.list("linked").err()),
        ("list behind a link", store.list("linked/below").err()),
        ("removal behind a link", store.remove(&["linked/below/kept"]).err()),
        ("place behind a link", store.create().unwrap().finish("linked/a").err()),
        ("append behind a link", store.append("linked/a", Tail::default(), b"x").err()),
        ("append to a link", store.append("link.l", Tail::default(), b"x").err()),
        ("append to a pipe", store.append("pipe.p", Tail::default(), b"x").err()),
        ("read a pipe", store.read("pipe.p").err()),
        ("read a link", store.read("link.l").err()),
        ("lock a pipe", store.lock("team=a").err()),
    ] {
        assert!(matches!(refused, Some(StoreError::Irregular { .. })), "{case}: {refused:?}");
    }
    let _free = store.lock("team=b").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), directory.path().join("tables")).unwrap();
    let refused = store.lock("team=c").err();
    assert!(matches!(refused, Some(StoreError::Irregular { .. })), "a writer behind a link: {refused:?}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    assert!(kept.try_exists().unwrap());
}

/// Between `fork` and `exec`, a child has every open file. So does a process that received a copy of the file handle.
#[test]
fn a_released_lock_is_free_although_its_file_is_open_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    let file = File::create(directory.path().join("held")).unwrap();
    file.try_lock().unwrap();
    let inherited = file.try_clone().unwrap();
    drop(LocalGuard(file));
    File::open(directory.path().join("held")).unwrap().try_lock().unwrap();
    drop(inherited);
    let guard = store.lock("team=a").unwrap();
    assert!(matches!(store.lock("team=a").err(), Some(StoreError::Locked { .. })));
    drop(guard);
    let _again = store.lock("team=a").unwrap();
}

/// Daemons that start together on a new archive wait for the one that makes it.
#[test]
fn the_lock_of_a_new_archive_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    let guard = store.lock(LOCK_OF_NEW).unwrap();
    let (sender, taken) = std::sync::mpsc::channel();
    let other = store.clone();
    let waiting = std::thread::spawn(move || sender.send(other.lock(LOCK_OF_NEW).map(drop)).unwrap());
    assert!(taken.recv_timeout(Duration::from_millis(300)).is_err(), "it does not wait");
    drop(guard);
    taken.recv().unwrap().unwrap();
    waiting.join().unwrap();
}

/// Another team's writer lists the scratch files, and removes the abandoned ones.
#[test]
fn a_list_shows_no_scratch_file_of_a_working_writer() {
    let directory = tempfile::tempdir().unwrap();
    let store = LocalStore::new(directory.path());
    let mut writer = store.create().unwrap();
    writer.write_all(b"unfinished").unwrap();
    let _ = File::create(directory.path().join("scratch/abandoned")).unwrap();
    for listed in [store.list(SCRATCH).unwrap(), store.list("").unwrap()] {
        let paths: Vec<&str> = listed.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["scratch/abandoned"]);
    }
    writer.finish("a").unwrap();
    assert_eq!(store.list("").unwrap()[0].path, "a");
}

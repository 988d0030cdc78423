//! A machine that refuses disk space, open files, writing or reading. The error names the path and the remedy, no
//! file is half written, and once there is space the archive equals the truth.
#![allow(clippy::print_stdout, reason = "the test prints why it is skipped, and its scenario")]

use crate::common::is_linux;
use crate::common::third_party::missing;
use crate::faulty_service;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use annals::archive::{Cache, FileEntry};
use annals::model::{Dataset, Digest, FileRole};
use annals::store::{MemoryStore, put};
use faulty_service::{DAY, Expected, HOUR, Program, Run, SINCE, Service, busy, hold_with, program, scene};

const NOON: i64 = DAY + 84 * HOUR;
/// The time limit of a run: the program does not wait for a permanent fault.
const HASTY: &str = "[api]\nretry_for = \"0s\"\n";
const GO_ON: &str = "remove the cause and run sync again, the archive is consistent";

fn busy_scene() -> (Service, Program) {
    let (service, program) = scene();
    busy(&mut service.world());
    program.configure(HASTY);
    (service, program)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn does(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

/// A mounted file system. A drop unmounts it.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Where mounting is not allowed the test fails, or is skipped (`None`).
    fn at(place: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(place).unwrap();
        let options = format!("size=64m,mode=755,{size}");
        if !is_root() || !does("mount", &["-t", "tmpfs", "-o", &options, "annals-test", place.to_str().unwrap()]) {
            missing("mounts", "full disks", "mounting a small file system needs root, and a kernel that lets it");
            return None;
        }
        Some(Self(place.to_owned()))
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,{size}");
        assert!(does("mount", &["-o", &options, self.0.to_str().unwrap()]), "{options}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        does("umount", &["-l", self.0.to_str().unwrap()]);
    }
}

/// Asserts that the archive verifies, if there is one.
fn is_whole(program: &Program, case: &str) {
    if program.archive().join("archive.json").is_file() {
        let verified = program.run(&["verify"]);
        assert_eq!(verified.code, Some(0), "{case}: {verified:?}");
    }
}

/// Asserts an orderly end with the reason, the path and the remedy.
#[track_caller]
fn is_said(run: &Run, reason: &str, case: &str) {
    assert_eq!(run.code, Some(1), "{case}: {run:?}");
    assert!(run.stderr.contains(reason) && !run.stderr.contains("panicked"), "{case}: {run:?}");
    let names = ["scratch/", "ledger/", "tables/", "locks/", "/archive"];
    assert!(names.iter().any(|name| run.stderr.contains(name)), "{case}: names no path: {run:?}");
}

/// Asserts that a sync completes the archive once there is space.
fn is_made_good(service: &Service, program: &Program) {
    program.sync(&SINCE).ended(0);
    hold_with(service, program, &Expected { requests_max: 20_000, arguments: &SINCE, ..Expected::default() });
}

/// A disk that grows a little each time, until everything fits.
fn grows(first: &str, size: impl Fn(usize) -> String, failures_min: usize) {
    let (service, program) = busy_scene();
    let Some(disk) = SmallDisk::at(&program.archive(), first) else { return };
    let mut failed = 0;
    for step in 1..200 {
        let size = size(step);
        disk.resize(&size);
        let run = program.sync(&SINCE);
        if run.code == Some(0) {
            break;
        }
        failed += 1;
        is_said(&run, "No space left on device", &size);
        is_whole(&program, &size);
        service.world().connection(NOON - HOUR + i64::try_from(step).unwrap(), 1);
    }
    assert!(failed >= failures_min, "the limit was felt {failed} times");
    disk.resize(&size(1_000));
    is_made_good(&service, &program);
}

#[test]
fn a_question_on_a_full_disk_evicts_cached_files_that_it_does_not_need() {
    let place = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::at(&place.path().join("disk"), "size=100k") else { return };
    let store = MemoryStore::new();
    let files: Vec<FileEntry> = (1..=3).map(|byte| cached_file(&store, byte)).collect();
    let cache = Cache::new(disk.0.join("cache"), 1 << 30);
    for asked in [&files[..2], &files[2..], &files[..2]] {
        let pinned = cache.pin(&store, asked).unwrap();
        let lengths = asked.iter().map(|file| fs::metadata(pinned.path_of(file)).unwrap().len());
        assert!(lengths.eq(asked.iter().map(|file| file.bytes)));
    }
    let refused = cache.pin(&store, &files).unwrap_err().to_string();
    for part in ["No space left on device", disk.0.to_str().unwrap(), "120000", "1073741824", "[cache] directory"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let _ = cache.pin(&store, &files[1..]).unwrap();
}

/// A file of 40,000 bytes in a store.
fn cached_file(store: &MemoryStore, byte: u8) -> FileEntry {
    let (path, content) = (format!("tables/{byte}.parquet"), vec![byte; 40_000]);
    put(store, &path, &content).unwrap();
    FileEntry {
        path,
        dataset: Dataset::Connections,
        role: FileRole::Month,
        rows: 1,
        bytes: content.len() as u64,
        sha256: Digest::of(&content),
        rows_digest: Digest::of(b""),
        first: None,
        last: None,
    }
}

#[test]
fn sync_reports_a_disk_without_space_and_recovers() {
    grows("size=4k", |step| format!("size={}k", step * 24), 8);
}

#[test]
fn sync_reports_a_disk_without_inodes_and_recovers() {
    grows("nr_inodes=2", |step| format!("nr_inodes={}", 1 + 6 * step), 8);
}

#[test]
fn sync_reports_too_few_open_files_and_recovers() {
    let (service, program) = busy_scene();
    let mut failed = 0;
    // From too few files for the start to enough for everything.
    for files in [5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 32, 64] {
        let case = format!("{files} files");
        let run = program.through_shell(&format!("ulimit -n {files}; exec \"$@\""), &[&["sync"], &SINCE[..]].concat());
        assert!(matches!(run.code, Some(0 | 1)) && !run.stderr.contains("panicked"), "{case}: {run:?}");
        if run.code == Some(1) {
            failed += 1;
            let is_named = run.stderr.contains("Too many open files") || run.stderr.contains("ulimit -n");
            assert!(is_named, "{case}: {run:?}");
        }
        is_whole(&program, &case);
        service.world().connection(NOON - HOUR + files, 1);
    }
    assert!(failed >= 8, "the limit was felt {failed} times");
    is_made_good(&service, &program);
}

#[test]
fn a_read_only_archive_is_reported_and_can_be_queried() {
    let (service, program) = busy_scene();
    if !is_root() || !does("unshare", &["-m", "true"]) {
        missing("mounts", "a read-only archive", "a mount of one's own needs root, and a kernel that lets it");
        return;
    }
    program.sync(&SINCE).ended(0);
    let before = program.ledger();
    service.world().connection(NOON - HOUR, 1);
    service.set_clock(NOON + HOUR);
    let mount = "mount --bind \"$ANNALS_ARCHIVE\" \"$ANNALS_ARCHIVE\" && \
                 mount -o remount,bind,ro \"$ANNALS_ARCHIVE\" && exec \"$@\"";
    let script = format!("exec unshare -m -- bash -c '{mount}' annals \"$@\"");
    let run = program.through_shell(&script, &[&["sync"], &SINCE[..]].concat());
    is_said(&run, "Read-only file system", "sync");
    for arguments in
        [vec!["verify"], vec!["status"], vec!["sql", "select count(*) from connections"], vec!["report", "run", "R24"]]
    {
        let run = program.through_shell(&script, &arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
    }
    assert_eq!(program.ledger(), before);
    is_made_good(&service, &program);
}

/// Paths without permission, and the message of each failure.
#[test]
fn sync_reports_missing_permissions_and_recovers() {
    // Permissions bind the owner, unless it is root with all its rights.
    let bound = if is_root() { "exec setpriv --inh-caps=-all --bounding-set=-all \"$@\"" } else { "exec \"$@\"" };
    if is_root() && !does("setpriv", &["--inh-caps=-all", "--bounding-set=-all", "true"]) {
        missing("mounts", "missing permissions", "root cannot give up its rights here");
        return;
    }
    let (service, program) = busy_scene();
    let sync = [&["sync"], &SINCE[..]].concat();
    fs::create_dir(program.archive()).unwrap();
    let mut clock = NOON;
    for (place, mode) in [
        ("", 0o555),
        ("locks/*", 0o444),
        ("ledger/*/*.jsonl", 0o444),
        ("scratch", 0o555),
        ("tables/*/*/*", 0o555),
        ("ledger/*/*.jsonl", 0o000),
        ("archive.json", 0o000),
    ] {
        let case = format!("{place:?} {mode:o}");
        println!("{case}");
        let closed = Closed::at(&matching(&program.archive(), place), mode);
        let run = program.through_shell(bound, &sync);
        is_said(&run, "Permission denied", &case);
        assert!(
            run.stderr.contains(GO_ON) || run.stderr.contains("/archive: "),
            "{case}: the message names no remedy: {run:?}"
        );
        drop(closed);
        is_whole(&program, &case);
        program.sync(&SINCE).ended(0);
        clock += HOUR;
        service.set_clock(clock);
        service.world().connection(clock - 60, 1);
        service.world().activity(clock - 50, 1);
    }
    for (name, code) in [("annals.toml", 2), ("token", 2)] {
        let path = program.home().join(name);
        program::put(&program.home().join("token"), service.token.as_bytes());
        let closed = Closed::at(&[path], 0o000);
        let script = format!("unset ANNALS_TOKEN; export ANNALS_TOKEN_FILE=token; {bound}");
        let run = program.through_shell(&script, &sync).ended(code).says(&[name, "Permission denied"]);
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
        drop(closed);
        fs::remove_file(program.home().join("token")).unwrap();
    }
    is_made_good(&service, &program);
}

/// The paths that match a pattern with `*` for whole names.
fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let (begin, end) = part.split_once('*').unwrap_or((part, ""));
        found = found
            .iter()
            .flat_map(|above| fs::read_dir(above).unwrap().map(|entry| entry.unwrap().path()))
            .filter(|path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                name == part || part.contains('*') && name.starts_with(begin) && name.ends_with(end)
            })
            .collect();
    }
    found
}

/// Changes the permissions of paths. A drop restores them.
struct Closed(Vec<(PathBuf, Permissions)>);

impl Closed {
    fn at(paths: &[PathBuf], mode: u32) -> Self {
        assert!(!paths.is_empty(), "nothing to close");
        let held = paths.iter().map(|path| (path.clone(), fs::metadata(path).unwrap().permissions())).collect();
        paths.iter().for_each(|path| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap());
        Self(held)
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        for (path, permissions) in &self.0 {
            fs::set_permissions(path, permissions.clone()).unwrap();
        }
    }
}

#[test]
fn a_scratch_directory_on_another_disk_is_refused_at_the_start() {
    let (service, program) = busy_scene();
    program.sync(&SINCE).ended(0);
    service.world().connection(NOON - HOUR, 1);
    service.set_clock(NOON + HOUR);
    let Some(disk) = SmallDisk::at(&program.archive().join("scratch"), "size=1m") else { return };
    program.sync(&SINCE).ended(1).says(&["scratch/ is on another file system than the archive's root"]);
    drop(disk);
    is_made_good(&service, &program);
}

#[test]
fn full_or_closed_outputs_do_not_affect_a_sync() {
    for (case, script, codes) in [
        ("a full disk behind the output", "exec \"$@\" >/dev/full", [0, 1]),
        ("a full disk behind the log", "exec \"$@\" 2>/dev/full", [0, 0]),
        ("both", "exec \"$@\" >/dev/full 2>/dev/full", [0, 1]),
        ("closed output", "exec \"$@\" >&-", [0, 1]),
        ("a closed log", "exec \"$@\" 2>&-", [0, 0]),
        ("nothing open at all", "exec \"$@\" <&- >&- 2>&-", [0, 1]),
        ("a reader who goes", "\"$@\" 2>&1 | true; exit ${PIPESTATUS[0]}", [0, 0]),
    ] {
        println!("{case}");
        if script.contains("/dev/full") && !is_linux(case, "only Linux has /dev/full") {
            continue;
        }
        let (service, program) = scene();
        service.world().fill(DAY, 0..3);
        let run = program.through_shell(script, &[&["sync"], &SINCE[..]].concat());
        assert!(run.code.is_some_and(|code| codes.contains(&code)), "{case}: {run:?}");
        let rows =
            program.sql("select (select count(*) from connections)::int + (select count(*) from activity)::int as n");
        assert_eq!(rows[0]["n"], 72, "{case}");
        hold_with(&service, &program, &Expected { requests_max: 1_000, arguments: &SINCE, ..Expected::default() });
    }
}

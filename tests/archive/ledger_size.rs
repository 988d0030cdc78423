//! A ledger that an attacker made as large as a disk: the program names the file, and uses no more memory than usual.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Archive, Draft, WindowRows};
use annals::model::{Detail, EventRow, Instant, Stream, TeamId, WindowGrid};
use annals::store::LocalStore;

use crate::common::wait::{pause, wait_for};

const HOLE_BYTES: u64 = 3 << 30;
/// The program with its engine takes about 60 MB; the hole is ten times the limit.
const MEMORY_KB_MAX: u64 = 300_000;

/// Four commits in one day's ledger.
fn make_archive(root: &Path) {
    let archive = Archive::open_or_create(Arc::new(LocalStore::new(root)), || "large".to_owned()).unwrap();
    let start: Instant = "2026-11-01T00:00:00Z".parse().unwrap();
    let window = WindowGrid::new(Duration::from_secs(86_400)).window_of(start);
    let mut writer = archive.writer(&TeamId::from("acme")).unwrap();
    for number in 0..4_u64 {
        let time = start.plus(Duration::from_secs(number));
        let event = EventRow {
            team_id: TeamId::from("acme"),
            event_id: format!("event-{number}").as_str().into(),
            time,
            event_type: "teamCreatedEvent".into(),
            revision: 1,
            first_seen_at: time,
            redacted: false,
            raw: format!("{{\"n\":{number}}}").into(),
            detail: Detail::Activity { token_info: None, payload: None },
            served_digest: None,
        };
        let rows = vec![WindowRows::new(Stream::Activity, window, vec![event], false)];
        let _ = writer.commit(Draft { rows, ..Draft::default() }, start).unwrap();
    }
}

/// The exit code, standard error, and the program's peak memory in kB. A run can end before its memory is seen: then it is repeated.
fn run(archive: &Path, arguments: &[&str]) -> (Option<i32>, String, u64) {
    wait_for("a run whose memory is seen", || {
        Some(run_once(archive, arguments)).filter(|(_, _, peak)| *peak > 0 || cfg!(not(target_os = "linux")))
    })
}

fn run_once(archive: &Path, arguments: &[&str]) -> (Option<i32>, String, u64) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("annals"));
    command.args(arguments).env("ANNALS_ARCHIVE", archive).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line =
            text.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|rest| rest.trim_end_matches("kB").trim());
        peak = peak.max(line.and_then(|number| number.parse().ok()).unwrap_or(0));
        pause(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap(), peak)
}

#[test]
fn a_ledger_of_three_gigabytes_of_zeros_is_named_and_takes_no_memory() {
    let ledger = "ledger/team=acme/2026-11-01.jsonl";
    for is_emptied in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        make_archive(directory.path());
        let file = OpenOptions::new().write(true).open(directory.path().join(ledger)).unwrap();
        if is_emptied {
            file.set_len(0).unwrap();
        }
        file.set_len(HOLE_BYTES).unwrap();
        let line = if is_emptied { 1 } else { 5 };
        for arguments in [&["sql", "SELECT count(*) FROM activity"][..], &["files", "activity"], &["verify"]] {
            let (code, said, peak) = run(directory.path(), arguments);
            assert_eq!(code, Some(1), "{arguments:?}: {said}");
            let is_named = said.contains(&format!("{ledger} line {line}: longer than")) || arguments == ["verify"];
            assert!(is_named, "{arguments:?}: {said}");
            assert!(peak < MEMORY_KB_MAX, "{arguments:?}: {peak} kB");
        }
    }
}

//! `annals vacuum` through the command line: its output, the removed files, its waits, and the state after a kill.

use crate::age;
use crate::crash::hold_back;
use crate::faulty_service;

use std::time::Duration;

use age::age;
use faulty_service::chance::Chance;
use faulty_service::{DAY, HOUR, Program, SINCE, Service, hold, scene};
use serde_json::Value;

/// When the backfill happens.
const FIRST: i64 = DAY + 84 * HOUR;

/// Two readings: the second one replaces some files of the first.
fn read_twice() -> (Service, Program) {
    let (service, program) = scene();
    service.world().fill(DAY, 0..3);
    program.sync(&SINCE).ended(0);
    for n in 0..5 {
        service.world().connection(FIRST + n * 60, n);
        service.world().activity(FIRST + n * 60, n);
    }
    service.set_clock(FIRST + 30 * HOUR);
    program.sync(&SINCE).ended(0);
    (service, program)
}

fn files(program: &Program) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut directories = vec![program.archive().join("tables")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(entry.path()),
                false => found.push(entry.path().strip_prefix(program.archive()).unwrap().to_str().unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

fn rows(program: &Program, arguments: &[&str]) -> Vec<Value> {
    let run = program.run(&[&["vacuum", "--format", "json"], arguments].concat()).ended(0);
    serde_json::from_str(&run.stdout).unwrap()
}

fn verdict(program: &Program) -> Value {
    serde_json::from_str(&program.run(&["verify", "--json"]).stdout).unwrap()
}

#[test]
fn replaced_files_are_kept_for_the_grace_and_then_removed() {
    let (service, program) = read_twice();
    let before = files(&program);
    let young = &rows(&program, &[])[0];
    assert_eq!((&young["team_id"], &young["files_removed"]), (&Value::from("team-one"), &Value::from(0)));
    let kept = young["files_kept"].as_u64().unwrap();
    assert!(kept > 0, "{young}");
    assert_eq!(verdict(&program)["retired"], kept);
    program.run(&["verify"]).ended(0).says(&[&format!("{kept} files retired")]);
    assert_eq!(files(&program), before);

    age(&program.archive());
    let shown = &rows(&program, &["--dry-run"])[0];
    assert_eq!((shown["files_removed"].as_u64(), &shown["files_kept"]), (Some(kept), &Value::from(0)), "{shown}");
    assert_eq!(files(&program), before, "a dry run removes nothing");
    // The archive is not damaged: the ledger records that these files should be gone.
    program.run(&["verify"]).ended(0).says(&[
        "SELF-CONSISTENT",
        &format!("notice: RETIRED_FILE ledger/team=team-one: {kept} files"),
        "run annals vacuum",
    ]);
    assert_eq!(verdict(&program)["retired"], kept);
    let report = program.run(&["report", "run", "r24", "--from", "-1d", "--format", "json", "--bare"]).ended(0);
    assert!(report.stdout.contains("SELF-CONSISTENT") && !report.stdout.contains("critical"), "{}", report.stdout);

    let removed = &rows(&program, &["--team", "team-one"])[0];
    assert_eq!(removed["files_removed"].as_u64(), Some(kept));
    assert!(removed["bytes_removed"].as_u64() > Some(1_000), "{removed}");
    assert_eq!(files(&program).len() as u64, before.len() as u64 - kept);
    assert_eq!(verdict(&program)["retired"], 0);
    hold(&service, &program, &SINCE);
}

#[test]
fn wrong_use_is_reported_in_one_line() {
    let (_service, program) = read_twice();
    program.run(&["vacuum", "--team", "nobody"]).ended(2).says(&["nobody"]);
    program.run(&["vacuum", "--archive", "elsewhere"]).ended(2).says(&["no archive exists here"]);
    program.run(&["vacuum", "--grace", "1h"]).ended(2).says(&["--grace"]);
    program.configure("[store]\ngrace = \"1h\"\n");
    program.run(&["vacuum"]).ended(2).says(&["store.grace", "2h to 366d"]);
}

#[test]
fn vacuum_beside_a_writer_stops_and_changes_nothing() {
    let (service, program) = read_twice();
    age(&program.archive());
    let before = files(&program);
    let gate = hold_back(&service);
    // The writer has something to commit.
    service.world().connection(FIRST + 30 * HOUR + 60, 9);
    service.set_clock(FIRST + 31 * HOUR);
    let writer = program.start_sync(&SINCE);
    gate.wait_for_answer();
    program.run(&["vacuum"]).ended(1).says(&["(team-one): cannot vacuum: another writer holds the lock"]);
    let shown = rows(&program, &["--dry-run"]);
    assert!(shown[0]["files_removed"].as_u64() > Some(0), "{shown:?}");
    assert!(before.iter().all(|path| files(&program).contains(path)));
    gate.open();
    writer.wait().ended(0);
    // A file that today's ledger file removes stays for the grace after the newest line.
    assert!(before.iter().all(|path| files(&program).contains(path)));
    hold(&service, &program, &SINCE);
}

#[test]
fn a_killed_vacuum_leaves_a_valid_archive() {
    let (service, program) = read_twice();
    let mut chance = Chance::of(2_026);
    let count = || program.sql("select count(*)::int as n from connections")[0]["n"].clone();
    let whole = count();
    for round in 0..12 {
        age(&program.archive());
        let running = program.start(&["vacuum"]);
        let run = running.kill_after(Duration::from_micros(chance.below(40_000)));
        assert!(matches!(run.code, None | Some(0)), "round {round}: {run:?}");
        assert_eq!(count(), whole, "round {round}");
    }
    program.run(&["vacuum"]).ended(0);
    assert_eq!(program.run(&["verify"]).code, Some(0));
    hold(&service, &program, &SINCE);
}

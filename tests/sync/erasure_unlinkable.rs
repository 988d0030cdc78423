//! `annals erase --unlinkable` through the command line: it replaces the salts of the months that it changes, and the archive stays
//! usable.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::erasure::{PEER, USER, assert_gone, counts, lock_one_of_two_teams, read};
use crate::faulty_service::program::files_below;
use crate::faulty_service::{DAY, HOUR, Program, Run, SINCE, scene, subject_search};

fn order(program: &Program, more: &[&str]) -> Run {
    let order = ["erase", "--order", "DPO-1", "--subject", PEER, "--subject", USER];
    program.run(&[&order[..], more].concat())
}

fn salts(program: &Program) -> BTreeSet<PathBuf> {
    files_below(&program.archive().join("salts")).into_iter().collect()
}

/// The names of the months of these files: `2026-11`.
fn months(salts: impl IntoIterator<Item = PathBuf>) -> BTreeSet<String> {
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap()[..7].to_owned();
    salts.into_iter().map(name).collect()
}

/// The orders of the certificate, each with whether it replaced salts.
fn certified(program: &Program) -> Vec<(Value, Value)> {
    let period = ["--from", "2020-01-01", "--to", "2099-12-31"];
    let run = program.run(&[&["report", "run", "retention", "--bare", "--format", "json"], &period[..]].concat());
    let rows: Vec<Value> = serde_json::from_str(&run.ended(0).stdout).unwrap();
    let mut orders: Vec<(Value, Value)> = rows
        .iter()
        .filter(|row| row["state"] == "erased")
        .map(|row| (row["order_id"].clone(), row["salts_replaced"].clone()))
        .collect();
    orders.dedup();
    orders
}

#[test]
fn the_salts_of_the_changed_months_are_replaced_and_the_archive_continues() {
    let (service, program) = read();
    let before = (salts(&program), counts(&program));
    order(&program, &["--unlinkable"]).ended(0);
    assert_gone(&program);
    let after = salts(&program);
    let gone = months(before.0.difference(&after).cloned());
    assert_eq!(gone, BTreeSet::from(["2026-11".to_owned()]), "the key of the team stays: {after:?}");
    assert_eq!((months(after.clone()), after.len()), (months(before.0.clone()), before.0.len()));
    let verified =
        program.run(&["verify"]).ended(0).says(&["SALT_REPLACED", "order DPO-1 replaced the salt of 2026-11"]);
    assert_eq!(verified.said().matches("SALT_REPLACED").count(), 1, "{verified:?}");
    assert_eq!(certified(&program), [(Value::from("DPO-1"), Value::from(true))]);

    // Re-scans, sealing and compaction write digests with the new salts.
    program.sync(&[&SINCE[..], &["--rescan"]].concat()).ended(0);
    service.set_clock(DAY + 400 * HOUR);
    program.sync(&SINCE).ended(0);
    service.set_clock(DAY + 1_200 * HOUR);
    program.sync(&SINCE).ended(0);
    assert_gone(&program);
    assert_eq!(counts(&program), before.1);
    program.run(&["verify"]).ended(0).says(&["SALT_REPLACED"]);
    let lines = program.ledger_lines();
    order(&program, &["--unlinkable"]).ended(0).says(&["already carried out"]);
    assert_eq!(program.ledger_lines(), lines);
}

#[test]
fn an_order_without_the_flag_keeps_its_salts_and_reports_it() {
    let (_service, program) = read();
    let before = salts(&program);
    order(&program, &[]).ended(0);
    assert_eq!(salts(&program), before);
    assert_eq!(certified(&program), [(Value::from("DPO-1"), Value::from(false))]);
    assert!(!program.run(&["verify"]).ended(0).said().contains("SALT_REPLACED"));
    order(&program, &["--unlinkable"]).ended(3).says(&["carried out without --unlinkable: the salts stay"]);
    assert_eq!(salts(&program), before);
}

#[test]
fn an_interrupted_order_still_replaces_the_salts() {
    for millis in [20, 60, 100, 140, 200] {
        let (_service, program) = read();
        let before = salts(&program);
        let arguments = ["erase", "--order", "DPO-1", "--subject", PEER, "--subject", USER, "--unlinkable"];
        let _ = program.start(&arguments).kill_after(Duration::from_millis(millis));
        order(&program, &["--unlinkable"]).ended(0);
        assert_gone(&program);
        let after = salts(&program);
        let gone = months(before.difference(&after).cloned());
        assert_eq!((gone, after.len()), (BTreeSet::from(["2026-11".to_owned()]), before.len()), "after {millis} ms");
        program.run(&["verify"]).ended(0).says(&["SALT_REPLACED"]);
    }
}

/// Another process holds one of two teams, so the order ends only in the other one.
#[test]
fn an_order_that_became_unlinkable_later_names_the_teams_with_their_old_salts() {
    let (service, program) = scene();
    let lock = lock_one_of_two_teams(&service, &program);
    order(&program, &[]).ended(1).says(&["team-one", "not erased"]);
    lock.unlock().unwrap();
    order(&program, &["--unlinkable"]).ended(3).says(&["team-two", "carried out without --unlinkable: the salts stay"]);
    assert_gone(&program);
    let verified = program.run(&["verify"]).ended(0);
    assert_eq!(verified.said().matches("SALT_REPLACED").count(), 1, "{verified:?}");
}

/// Each replaced salt gives a notice, and `verify` shows a limited number of them.
#[test]
fn the_notice_that_explains_the_exit_code_stands_before_many_replaced_salts() {
    let (service, program) = scene();
    subject_search::years(&mut service.world());
    program.sync(&subject_search::SINCE).ended(0);
    program.configure("[retention]\nconnections = \"1y\"\n");
    program.run(&["retention", "apply", "--trust-clock"]).ended(0);
    program.run(&[&subject_search::ORDER[..], &["--unlinkable"]].concat()).ended(0);
    program.run(&["verify"]).ended(0).says(&["SALT_REPLACED", "more: --json shows them"]);
    program.configure("[retention]\nconnections = \"2y\"\n");
    program.run(&["verify"]).ended(3).says(&["POLICY_CHANGED", "more: --json shows them"]);
}

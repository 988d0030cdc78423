//! `annals erase --again` through the command line: an older backup is restored, and the orders run on it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::erasure::{PEER, USER, assert_gone, counts, pseudonyms, read, rows};
use crate::faulty_service::program::{files_below, put};
use crate::faulty_service::{Program, Run, SINCE};

/// A person whose order the backup already holds.
const EARLIER: &str = "p4@example.com";

/// A directory outside the archive's home, for the files of a data protection officer.
struct OfficerFiles(TempDir);

impl OfficerFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn keep(&self, name: &str, text: &str) -> String {
        put(&self.path(name), text.as_bytes());
        self.path(name).to_str().unwrap().to_owned()
    }
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").args(["-a", from.to_str().unwrap(), to.to_str().unwrap()]).status().unwrap();
    assert!(done.success());
}

fn orders() -> String {
    let other = format!("{{\"order\":\"DPO-0\",\"subject\":[\"{EARLIER}\"]}}\n");
    let order = format!("{{\"order\":\"DPO-1\",\"team\":[\"team-one\"],\"subject\":[\"{PEER}\",\"{USER}\"]}}\n");
    format!("{other}\n{order}")
}

fn again(program: &Program, file: &str, more: &[&str]) -> Run {
    program.run(&[&["erase", "--again", file], more].concat())
}

#[test]
fn lost_orders_of_a_restored_backup_are_reported_and_run_again() {
    let (service, program) = read();
    let office = OfficerFiles::new();
    let whole = counts(&program);
    program.run(&["erase", "--order", "DPO-0", "--subject", EARLIER]).ended(0);
    copy(&program.archive(), &office.path("back-up"));
    program.run(&["erase", "--order", "DPO-1", "--subject", PEER, "--subject", USER]).ended(0);
    let head = office.keep("head", &program.run(&["anchor"]).ended(0).stdout);
    // An editor on Windows can begin a file with a byte order mark.
    let file = office.keep("orders.jsonl", &format!("\u{feff}{}", orders()));

    // The current archive has no open order.
    let lines = program.ledger_lines();
    again(&program, &file, &[])
        .ended(0)
        .says(&["DPO-0: no row holds the subject: already carried out", "DPO-1: no row holds the subject: already"]);
    assert_eq!(program.ledger_lines(), lines);

    fs::remove_dir_all(program.archive()).unwrap();
    copy(&office.path("back-up"), &program.archive());
    program.run(&["verify"]).ended(0);
    program.run(&["verify", "--head", &head]).ended(1).says(&["HEAD_ROLLBACK"]);
    assert_eq!(program.sql("select distinct order_id from erasures").len(), 1);

    let before = files_below(&program.archive());
    let dry = again(&program, &file, &["--dry-run", "--format", "json"]).ended(0).says(&["DPO-0 would", "DPO-1 would"]);
    assert!(rows(&dry.stdout).len() > 20 && rows(&dry.stdout).iter().all(|row| row["order_id"] == "DPO-1"), "{dry:?}");
    assert_eq!(files_below(&program.archive()), before);

    let run =
        again(&program, &file, &["--format", "json"]).ended(0).says(&["DPO-0: no row holds the subject: already"]);
    assert!(rows(&run.stdout).iter().all(|row| row["order_id"] == "DPO-1" && row["ledger_seq"].is_u64()), "{run:?}");
    assert!(!run.said().contains(PEER) && !run.said().contains(USER), "{run:?}");
    assert_gone(&program);
    assert_eq!(counts(&program), whole);
    assert_eq!(pseudonyms(&program).len(), 3);
    program.run(&["verify"]).ended(0);
    assert!(!program.run(&["status"]).stdout.contains("unfinished erasure"));
    // The new lines belong to another history than the kept head.
    program.run(&["verify", "--head", &head]).ended(1);
    service.set_clock(crate::faulty_service::DAY + 400 * crate::faulty_service::HOUR);
    program.sync(&[&SINCE[..], &["--rescan"]].concat()).ended(0);
    assert_gone(&program);
    again(&program, &file, &[]).ended(0).says(&["DPO-1: no row holds the subject: already carried out"]);
}

#[test]
fn an_interrupted_order_is_completed_with_its_own_pseudonyms() {
    let (_service, program) = read();
    let office = OfficerFiles::new();
    let file = office.keep("orders.jsonl", &orders());
    for millis in [30, 60, 90, 120, 180, 250] {
        let _ = program.start(&["erase", "--again", &file]).kill_after(std::time::Duration::from_millis(millis));
    }
    again(&program, &file, &[]).ended(0);
    assert_gone(&program);
    assert_eq!(pseudonyms(&program).len(), 3);
    program.run(&["verify"]).ended(0);
    assert!(!program.run(&["status"]).stdout.contains("unfinished erasure"));
}

#[test]
fn a_held_order_is_named_and_the_others_run() {
    let (_service, program) = read();
    let office = OfficerFiles::new();
    let file = office.keep("orders.jsonl", &orders());
    program.run(&["hold", "add", "--id", "CASE-7", "--reason", "a claim", "--subject", EARLIER]).ended(0);
    again(&program, &file, &[]).ended(1).says(&["DPO-0: ", "legal hold CASE-7 covers rows of the subject"]);
    assert_eq!(pseudonyms(&program).len(), 0, "a session of both people is under the hold");
    program.run(&["hold", "release", "CASE-7", "--reason", "closed"]).ended(0);
    again(&program, &file, &[]).ended(0);
    assert_gone(&program);
    program.run(&["verify"]).ended(0);
}

#[test]
fn a_wrong_file_changes_nothing_and_is_named_in_one_line() {
    let (_service, program) = read();
    let office = OfficerFiles::new();
    program.run(&["erase", "--order", "DPO-9", "--subject", EARLIER]).ended(0);
    let before = (program.ledger_lines(), files_below(&program.archive()));
    let good = orders();
    let bad = |line: &str| format!("{good}{line}\n");
    for (text, says) in [
        (bad("no JSON"), ".jsonl:4: not JSON, at column "),
        (bad("[\"DPO-2\"]"), ".jsonl:4: not a JSON object"),
        (
            bad("{\"order\":\"DPO-2\",\"subject\":\"secret@example.com\",\"when\":\"now\"}"),
            ".jsonl:4: unknown key when",
        ),
        (bad("{\"order\":\"DPO-1\",\"subject\":\"secret@example.com\"}"), ".jsonl:4: order DPO-1 is also in line 3"),
        (
            bad("{\"order\":\"DPO-9\",\"subject\":\"secret@example.com\"}"),
            ".jsonl:4: order DPO-9 was given before for another",
        ),
        (bad("{\"order\":\"DPO-2\",\"subject\":\"team-one\"}"), ".jsonl:4: the subject is the id of a team"),
        (bad("{\"order\":\"DPO-2\",\"subject\":\"secret@example.com\",\"team\":\"nowhere\"}"), ".jsonl:4: "),
        (bad("{\"order\":\"DPO-2\",\"subject\":\"host\"}"), "DPO-2: "),
        ("\n\n".to_owned(), "holds no order"),
    ] {
        let file = office.keep("orders.jsonl", &text);
        let run = again(&program, &file, &[]).ended(2).says(&[says]);
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
        assert!(!run.said().contains("secret@") && !run.said().contains(PEER), "{run:?}");
    }
    put(&office.path("bytes"), b"\xff\xfe");
    for (file, says) in [("nowhere.jsonl", "No such file"), (".", "a directory"), ("bytes", "not UTF-8")] {
        let file = office.path(file).to_str().unwrap().to_owned();
        let run = again(&program, &file, &[]).ended(2).says(&["--again: cannot read", says]);
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
    let file = office.keep("orders.jsonl", &good);
    again(&program, &file, &["--order", "DPO-3"]).ended(2).says(&["--again", "--order"]);
    assert_eq!((program.ledger_lines(), files_below(&program.archive())), before);
}

/// An order finds only the given values, so an order with the address alone leaves the events that hold the user's id.
#[test]
fn an_order_counts_the_user_ids_that_the_roster_joins_to_its_address() {
    let (_service, program) = read();
    let erase = ["erase", "--order", "DPO-1", "--subject", "u1@example.com", "--dry-run", "--format", "json"];
    let dry = program.run(&erase).ended(0).says(&["joins the subject to 1 user id that the order does not give"]);
    let is_user = |row: &&serde_json::Value| row["dataset"] == "inventory_users" && row["id"] == "team-one-u1";
    assert_eq!(rows(&dry.stdout).iter().filter(is_user).count(), 1, "{dry:?}");
    let whole = program.run(&[&erase[..], &["--subject", "team-one-u1"]].concat()).ended(0);
    assert!(!whole.said().contains("joins the subject"), "{whole:?}");
}

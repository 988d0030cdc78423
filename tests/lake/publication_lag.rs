//! `annals status` about open tables: how far each is behind the ledgers, and why one cannot be read.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::faulty_service::Program;
use super::tables::{directory, publish, put, read_on, read_once};
use crate::common::wait::wait_for;

fn shown(program: &Program) -> String {
    program.run(&["status"]).ended(0).stdout
}

fn tables(program: &Program) -> Vec<Value> {
    let status: Value = serde_json::from_str(&program.run(&["status", "--json"]).ended(0).stdout).unwrap();
    status["tables"].as_array().unwrap().clone()
}

fn standing(program: &Program, table: &str) -> Value {
    tables(program).into_iter().find(|standing| standing["table"] == table).unwrap()
}

fn ledger(program: &Program) -> Vec<Value> {
    let files = program.ledger().into_iter();
    let texts: Vec<Vec<u8>> =
        files.filter(|(path, _)| path.extension().unwrap() == "jsonl").map(|(_, text)| text).collect();
    let lines = texts.iter().flat_map(|text| text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()));
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// The live files of a dataset after some lines.
fn live(lines: &[Value], dataset: &str) -> BTreeSet<String> {
    let mut live = BTreeSet::new();
    for line in lines {
        for removed in line["body"]["removes"].as_array().into_iter().flatten() {
            live.remove(removed.as_str().unwrap());
        }
        let adds = line["body"]["adds"].as_array().into_iter().flatten();
        live.extend(adds.filter(|add| add["dataset"] == dataset).map(|add| add["path"].as_str().unwrap().to_owned()));
    }
    live
}

/// The lines, by team and number, that changed the live files since the first `before` lines of each ledger.
fn commits(before: &[Value], now: &[Value], dataset: &str) -> usize {
    let (old, new) = (live(before, dataset), live(now, dataset));
    let changed: BTreeSet<&String> = old.symmetric_difference(&new).collect();
    let names = |line: &&Value| {
        let adds = line["body"]["adds"].as_array().into_iter().flatten().map(|add| &add["path"]);
        let mut named = adds.chain(line["body"]["removes"].as_array().into_iter().flatten());
        named.any(|path| changed.contains(&path.as_str().unwrap().to_owned()))
    };
    now.iter().filter(|line| !before.contains(line)).filter(names).count()
}

#[test]
fn status_counts_the_commits_that_a_table_lacks() {
    let (service, program) = read_once();
    assert!(!shown(&program).contains("open table"), "nobody publishes");
    assert_eq!(tables(&program), Vec::<Value>::new());
    publish(&program, &[]);
    assert!(shown(&program).contains("not behind the ledgers"));
    assert_eq!(tables(&program).len(), annals::lake::TableId::all().len());
    let before = ledger(&program);
    read_on(&service, &program, 30);
    let now = ledger(&program);
    for name in ["connections", "activity", "sessions", "quarantine"] {
        let standing = standing(&program, name);
        let commits = commits(&before, &now, name);
        assert_eq!(standing["commits_behind"], commits, "{standing}");
        assert_eq!(standing["behind_since"].is_null(), commits == 0, "{standing}");
        assert!(standing["error"].is_null() && !standing["published_at"].is_null(), "{standing}");
    }
    assert!(commits(&before, &now, "connections") > 0 && commits(&before, &now, "quarantine") == 0);
    assert!(standing(&program, "coverage")["commits_behind"].is_null(), "the ledgers name no files of it");
    let said = shown(&program);
    assert!(said.contains("are behind the ledgers; the oldest is ") && !said.contains("; late: "), "{said}");
    program.run(&["status", "--format", "csv"]).ended(0).says(&["are behind the ledgers"]);
    publish(&program, &["--dataset", "sessions"]);
    assert_eq!(standing(&program, "sessions")["commits_behind"], 0);
    assert_ne!(standing(&program, "connections")["commits_behind"], 0);
    program.configure("[publish]\nschedule = \"* * * * * *\"\n");
    wait_for("a late publication", || {
        shown(&program).contains("; late: [publish] schedule publishes every 1s").then_some(())
    });
    publish(&program, &[]);
    assert!(shown(&program).contains("not behind the ledgers"));
}

#[test]
fn status_names_a_table_that_cannot_be_read_and_a_schedule_that_published_nothing() {
    let (_service, program) = read_once();
    program.configure("[publish]\nschedule = \"*/15 * * * *\"\n");
    assert!(shown(&program).contains("open tables: none is published yet, though [publish] schedule is set"));
    publish(&program, &[]);
    fs::remove_dir_all(directory(&program, "sessions")).unwrap();
    put(directory(&program, "sessions"), "of somebody else");
    program.run(&["publish"]).ended(1).says(&["tables/sessions/metadata"]);
    let said = shown(&program);
    let line = said.lines().find(|line| line.starts_with("open table sessions: it cannot be read: ")).unwrap();
    assert!(line.contains("tables/sessions/metadata"), "{line}");
    assert!(standing(&program, "sessions")["error"].as_str().unwrap().contains("tables/sessions/metadata"));
    assert!(standing(&program, "sessions")["commits_behind"].is_null());
    assert_eq!(standing(&program, "connections")["commits_behind"], 0);
}

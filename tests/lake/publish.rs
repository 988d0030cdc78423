//! `annals publish` through the command line: its output, its exit codes, and wrong use.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::faulty_service::Program;
use super::tables::{directory, faults, json_of, newest, publish, put, read_on, read_once};

fn names(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(|row| row["table"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_run_publishes_what_changed_and_a_second_run_adds_nothing() {
    let (service, program) = read_once();
    let first = publish(&program, &[]);
    assert_eq!(
        names(&first),
        annals::lake::TableId::all().into_iter().map(|table| table.as_str().to_owned()).collect()
    );
    assert!(first.iter().all(|row| row["version"] == 1 && row["is_new"] == true), "{first:?}");
    let rows = |table: &str| program.sql(&format!("select count(*)::int as n from {table}"))[0]["n"].clone();
    for name in ["connections", "activity", "billing", "sessions", "quarantine", "findings"] {
        let shown = first.iter().find(|row| row["table"] == name).unwrap();
        assert_eq!(shown["rows"], rows(name), "{name}");
    }
    assert_eq!(faults(&program, 0), []);
    let again = publish(&program, &[]);
    assert!(again.iter().all(|row| row["version"] == 1 && row["is_new"] == false), "{again:?}");

    read_on(&service, &program, 30);
    let [row] = &publish(&program, &["--dataset", "sessions"])[..] else { panic!("one table was asked for") };
    assert_eq!((&row["table"], &row["version"], &row["rows"]), (&"sessions".into(), &2.into(), &rows("sessions")));
    assert_eq!(json_of(&newest(&program, "connections"))["last-sequence-number"], 1);
    let both = publish(&program, &["--dataset", "activity", "--dataset", "connections", "--dataset", "activity"]);
    assert_eq!(names(&both), ["activity", "connections"].map(str::to_owned).into());
    assert!(both.iter().all(|row| row["is_new"] == true && row["rows"] == rows(row["table"].as_str().unwrap())));
    assert_eq!(faults(&program, 0), []);
    program.run(&["publish", "--check"]).ended(0).says(&[&format!("tables {}", first.len())]);
}

#[test]
fn wrong_use_is_reported_in_one_line() {
    let (_service, program) = read_once();
    program.run(&["publish", "--dataset", "sesions"]).ended(2).says(&["sesions", "the tables are", "sessions"]);
    program.run(&["publish", "--archive", "elsewhere"]).ended(2).says(&["no archive exists here"]);
    for (location, word) in [
        ("/srv/archive", "write an address"),
        ("s3:/key:secret@bucket", "write an address"),
        ("s3://key:secret@bucket/a", "credentials"),
    ] {
        program.configure(&format!("[publish]\nlocation = \"{location}\"\n"));
        let run = program.run(&["publish"]).ended(2).says(&["publish.location", word]);
        assert!(!run.said().contains("secret"), "{}", run.said());
    }
    program.configure("");
    program.run(&["publish", "--archive", "az://container/prefix"]).ended(2).says(&["publish.location", "abfss://"]);
    for archive in ["why?", "number#1"] {
        program.run(&["publish", "--archive", archive]).ended(2).says(&[archive, "? or #", "publish.location"]);
    }
    program.configure("[publish]\nschedule = \"often\"\n");
    program.run(&["publish"]).ended(2).says(&["publish.schedule", "often"]);
    program.configure("");
    assert!(!directory(&program, "sessions").is_dir(), "a refused run publishes nothing");
    // The archive has no table: there is nothing to check.
    program.run(&["publish", "--check"]).ended(0).says(&["tables 0"]);
}

/// A file blocks the place of a table's metadata: the program names the file and does not change it.
#[test]
fn a_table_that_cannot_be_published_is_code_1_and_names_the_file() {
    let (_service, program) = read_once();
    fs::create_dir_all(directory(&program, "sessions").parent().unwrap()).unwrap();
    put(directory(&program, "sessions"), "of somebody else");
    let failed = format!("cannot publish 1 of {} tables (sessions)", annals::lake::TableId::all().len());
    let run = program.run(&["publish"]).ended(1).says(&["tables/sessions/metadata", &failed]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    // The check names this table, and checks the others.
    assert_eq!(faults(&program, 1), [("sessions".to_owned(), "TABLE_METADATA".to_owned())]);
    assert_eq!(fs::read_to_string(directory(&program, "sessions")).unwrap(), "of somebody else");
    fs::remove_file(directory(&program, "sessions")).unwrap();
    publish(&program, &[]);
    assert_eq!(faults(&program, 0), []);
    // Metadata of another program.
    put(newest(&program, "sessions"), "{\"format-version\": 1}");
    program.run(&["publish"]).ended(1).says(&["tables/sessions/metadata/v1.metadata.json"]);
    assert_eq!(faults(&program, 1), [("sessions".to_owned(), "TABLE_METADATA".to_owned())]);
    let check = ["publish", "--check", "--format", "json"];
    program.run(&check).ended(1).says(&["delete tables/sessions/metadata, and publish again"]);
    fs::remove_dir_all(directory(&program, "sessions")).unwrap();
    publish(&program, &[]);
    assert_eq!(faults(&program, 0), []);
}

/// Nobody must repair an unrelated table before an order ends: its key would stay until then.
#[test]
fn a_damaged_table_stops_neither_the_others_nor_an_erasure() {
    let (service, program) = read_once();
    publish(&program, &[]);
    let damaged = newest(&program, "billing");
    put(&damaged, "{}");
    read_on(&service, &program, 30);
    let run =
        program.run(&["publish", "--format", "json"]).ended(1).says(&["tables/billing/metadata/v1.metadata.json"]);
    let rows: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(rows.len(), annals::lake::TableId::all().len() - 1);
    assert!(rows.iter().any(|row| row["table"] == "sessions" && row["version"] == 2), "{rows:?}");
    let [row] = &program.sql("select peer_email as subject from connections where peer_email is not null limit 1")[..]
    else {
        panic!("no event has a peer")
    };
    let erase = ["erase", "--order", "DPO-1", "--yes-all", "--subject", row["subject"].as_str().unwrap()];
    program.run(&erase).ended(1).says(&["tables/billing/metadata/v1.metadata.json"]);
    let scratch = super::faulty_service::program::files_below(&program.archive());
    let keys: Vec<_> = scratch.iter().filter(|path| path.to_str().unwrap().contains("/erasure-")).collect();
    assert!(keys.is_empty(), "{keys:?}");
    assert_eq!(json_of(&newest(&program, "connections"))["last-sequence-number"], 3);
    // The next publication after a repair carries on, and so does the order.
    fs::remove_dir_all(directory(&program, "billing")).unwrap();
    publish(&program, &[]);
    program.run(&erase).ended(0);
    assert_eq!(faults(&program, 0), []);
}

fn location(program: &Program) -> Value {
    json_of(&newest(program, "activity"))["location"].clone()
}

#[test]
fn a_moved_archive_is_published_again_at_its_new_address() {
    let (_service, program) = read_once();
    publish(&program, &[]);
    assert_eq!(location(&program), format!("file://{}/tables/activity", program.archive().display()));
    program.configure("[publish]\nlocation = \"s3://bucket/prefix/\"\n");
    assert!(publish(&program, &[]).iter().all(|row| row["is_new"] == true && row["version"] == 2));
    assert_eq!(location(&program), "s3://bucket/prefix/tables/activity");
    assert_eq!(faults(&program, 0), []);
}

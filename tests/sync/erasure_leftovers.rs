//! `annals erase` beside files that a killed query or another program left, and in the key of a token.

use std::fs;

use super::erasure::{PEER, USER, assert_gone, read, rows};
use crate::faulty_service::program::{files_below, put};

const ORDER: [&str; 9] = ["erase", "--order", "DPO-1", "--subject", PEER, "--subject", USER, "--format", "json"];

#[test]
fn an_order_and_an_expiry_remove_what_a_killed_query_spilled() {
    let (_service, program) = read();
    program.configure("[sql]\ntemp_directory = \"spill\"\n");
    let spilled = program.home().join("spill/annals-sql-left/duckdb_temp_storage-0.tmp");
    for arguments in [&ORDER[..], &["retention", "apply"]] {
        fs::create_dir_all(spilled.parent().unwrap()).unwrap();
        put(&spilled, PEER.as_bytes());
        program.run(arguments).ended(0);
        assert!(!spilled.try_exists().unwrap(), "{arguments:?}");
    }
    assert_gone(&program);
}

/// The key of the pseudonyms must not survive the order.
#[test]
fn a_damaged_list_of_sent_alerts_keeps_no_key() {
    let (_service, program) = read();
    let list = program.archive().join("locks/alerts.json");
    put(&list, b"{bad");
    let run = program.run(&ORDER).ended(1).says(&["cannot remove detections from", "delete it"]);
    assert!(!rows(&run.stdout).is_empty(), "{run:?}");
    assert!(files_below(&program.archive().join("scratch")).is_empty());
    fs::remove_file(list).unwrap();
    program.run(&ORDER).ended(0).says(&["already carried out"]);
    assert_gone(&program);
}

#[test]
fn an_order_names_a_foreign_file_and_leaves_it() {
    let (_service, program) = read();
    let tables = files_below(&program.archive().join("tables/connections"));
    let file = tables.iter().find(|path| path.extension().is_some_and(|ending| ending == "parquet")).unwrap();
    let foreign = file.with_extension("parquet.bak");
    fs::copy(file, &foreign).unwrap();
    let says = [".parquet.bak: a copy may stay", "remove it yourself"];
    program.run(&[&ORDER[..], &["--dry-run"]].concat()).ended(0).says(&says);
    program.run(&ORDER).ended(3).says(&says);
    program.run(&["erase", "--order", "DPO-2", "--subject", "nobody@example.com"]).ended(3).says(&says);
    program.run(&["vacuum"]).ended(0).says(&["1 foreign file", ".parquet.bak"]);
    fs::remove_file(foreign).unwrap();
    program.run(&ORDER).ended(0);
    assert_gone(&program);
}

/// The key of a token is its title and a number.
#[test]
fn a_title_of_a_token_leaves_its_key_too() {
    let (_service, program) = read();
    let token = || program.sql("select user_id, title, token_key from inventory_tokens").remove(0);
    let before = token();
    assert_eq!((&before["title"], &before["token_key"]), (&"web".into(), &"web #1".into()));
    program.run(&["erase", "--order", "DPO-1", "--subject", "Web"]).ended(0);
    let after = token();
    let title = after["title"].as_str().unwrap();
    assert!(title.starts_with("erased-"), "{after}");
    assert_eq!((&after["token_key"], &after["user_id"]), (&format!("{title} #1").into(), &before["user_id"]));
    program.run(&["verify"]).ended(0);
}

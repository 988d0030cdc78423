//! `annals erase` also reaches files beside the archive, derived values and parts of values.

use std::fs;

use super::erasure::{PEER, USER, assert_gone, read, rows};
use crate::faulty_service::parquet_files::all_texts;
use crate::faulty_service::program::{files_below, put};
use crate::faulty_service::world::Kind;
use crate::faulty_service::{DAY, HOUR, SINCE, events, scene};

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

/// A sentence about a quarantined event names its fields, and a field's name can be a person's.
#[test]
fn no_part_of_a_long_name_stays_in_the_sentence_about_an_event() {
    let (service, program) = scene();
    let name = format!("ann@{}example.com", "department.".repeat(6));
    let at = (DAY + 9 * HOUR) * 1_000_000_000;
    let text = format!(r#"{{"header":{{"eventTimestampUnixNano":{at}}},"{name}Event":{{}},"twoEvent":{{}}}}"#);
    service.world().add(Kind::Activity, i128::from(at), None, text);
    program.sync(&SINCE).ended(0);
    let order = ["erase", "--order", "DPO-1", "--subject", &format!("{name}Event"), "--yes-all"];
    program.run(&order).ended(0);
    assert!(!all_texts(&program).iter().any(|text| text.contains("ann@")), "{:?}", all_texts(&program));
    program.run(&["verify"]).ended(0);
}

/// The pseudonym of an email address keeps the domain, but `@annsmith` is a name.
#[test]
fn a_pseudonym_keeps_nothing_of_a_name_behind_an_at_sign() {
    let (service, program) = scene();
    let at = (DAY + 9 * HOUR) * 1_000_000_000;
    let text = events::activity_event("teamUserLoggedInEvent", at, r#"{"user":"@AnnSmith"}"#);
    service.world().add(Kind::Activity, i128::from(at), None, text);
    program.sync(&SINCE).ended(0);
    program.run(&["erase", "--order", "DPO-1", "--subject", "@annsmith"]).ended(0);
    let texts = all_texts(&program);
    assert!(texts.iter().any(|text| text.contains("@erased.invalid")), "{texts:?}");
    assert!(!texts.iter().any(|text| text.to_lowercase().contains("annsmith")), "{texts:?}");
}

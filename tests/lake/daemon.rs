//! The daemon publishes on a schedule, shows a failure, and checks the tables with the archive.

use std::fs;

use serde_json::Value;

use super::catalog::{Daemon, TOKEN};
use super::faulty_service::{HOUR, Program, Service};
use super::tables::{FIRST, directory, faults, json_of, newest, put, read_once};
use crate::common::wait::{note, wait_for};

const EVERY_SECOND: &str = "[publish]\nschedule = \"* * * * * *\"\n\
    [schedule]\nconnections = \"*/2 * * * * *\"\nactivity = \"*/2 * * * * *\"\nverify = \"*/2 * * * * *\"\n";

fn status(daemon: &Daemon<'_>) -> Value {
    serde_json::from_str(&daemon.ask("GET", "/api/status", Some(TOKEN)).1).unwrap()
}

/// The number of rows by the table's newest version, and by the archive.
fn rows(program: &Program) -> Option<(String, String)> {
    let hint = directory(program, "connections").join("version-hint.text");
    let metadata = hint.is_file().then(|| json_of(&newest(program, "connections")))?;
    let snapshot = metadata["snapshots"].as_array()?.last()?.clone();
    let held = program.sql("select count(*)::varchar as n from connections")[0]["n"].as_str()?.to_owned();
    let published = snapshot["summary"]["total-records"].as_str()?.to_owned();
    note("rows of the table, and of the archive", &format!("{published}, {held}"));
    Some((published, held))
}

#[test]
fn the_daemon_publishes_on_its_schedule_and_serves_the_new_version_at_once() {
    let (service, program) = read_once();
    let daemon = Daemon::start(&program, EVERY_SECOND);
    wait_for("a publication", || daemon.metric("annals_publish_timestamp_seconds"));
    assert_eq!(daemon.metric("annals_publish_failed"), Some(0.0));
    assert!(status(&daemon)["publish"]["error"].is_null() && !status(&daemon)["publish"]["done_at"].is_null());
    let loaded = |name: &str| daemon.catalog(&format!("namespaces/annals/tables/{name}"))["metadata-location"].clone();
    let before = loaded("connections");
    let (published, _) = rows(&program).unwrap();
    service.set_clock(FIRST + HOUR);
    service.world().connection(FIRST + HOUR - 30, 1);
    let is_new = |(now, held): &(String, String)| *now != published && now == held;
    wait_for("the new event in the table", || rows(&program).filter(is_new));
    // The daemon notifies its catalog of each publication.
    wait_for("the new version in the catalog", || (loaded("connections") != before).then_some(()));
    wait_for("a check of the archive", || daemon.metric("annals_verify_timestamp_seconds"));
    assert_eq!(daemon.metric("annals_verify_faults"), Some(0.0));
    daemon.end();
    assert_eq!(faults(&program, 0), []);
}

#[test]
fn a_failed_publication_is_shown_and_the_daemon_keeps_reading() {
    let (service, program) = read_once();
    // A file blocks the directory of the metadata.
    let place = directory(&program, "sessions");
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    put(&place, "of somebody else");
    let daemon = Daemon::start(&program, EVERY_SECOND);
    wait_for("a failure", || daemon.metric("annals_publish_failed").filter(|failed| *failed == 1.0));
    let shown = status(&daemon);
    assert!(shown["publish"]["error"].as_str().unwrap().contains("tables/sessions/metadata"), "{shown}");
    assert!(shown["publish"]["done_at"].is_null(), "{shown}");
    assert!(daemon.ask("GET", "/", Some(TOKEN)).1.contains("(the open tables)"), "the page names the failure");
    let count = || program.sql("select count(*)::int as n from connections")[0]["n"].as_u64();
    // Count before the event exists: the daemon may read it within two seconds.
    let before = count();
    service.set_clock(FIRST + HOUR);
    service.world().connection(FIRST + HOUR - 30, 1);
    wait_for("the new event", || (count() > before).then_some(()));
    let healthy = || (status(&daemon)["healthy"] == true).then_some(());
    wait_for("health", healthy);
    fs::remove_file(&place).unwrap();
    wait_for("a publication", || daemon.metric("annals_publish_failed").filter(|failed| *failed == 0.0));
    assert!(status(&daemon)["publish"]["error"].is_null());
    let log = daemon.end();
    let failed = format!("cannot publish 1 of {} tables (sessions)", annals::lake::TableId::all().len());
    assert!(log.contains("a publication failed") && log.contains(&failed), "{log}");
    assert_eq!(faults(&program, 0), []);
}

/// Vacuum keeps the files that a table names, so a table must not name expired files for ever.
#[test]
fn the_daemon_updates_existing_tables_after_an_expiry_without_a_publication_schedule() {
    // 2025-01-01T00:00:00Z, and the service's present 75 days later.
    let january = 1_735_689_600;
    let service = Service::at(january + 75 * 24 * HOUR);
    let program = Program::of(&service);
    for day in [0, 9, 40] {
        service.world().fill(january + day * 24 * HOUR, 0..1);
    }
    program.sync(&["--since", "2025-01-01"]).ended(0);
    super::tables::publish(&program, &["--dataset", "connections"]);
    let (published, held) = rows(&program).unwrap();
    assert_eq!(published, held);
    // The daemon expires rows by the earlier of the service's clock and its own.
    service.set_clock(january + 500 * 24 * HOUR);
    let expiring = "[retention]\nconnections = \"1y\"\n[schedule]\nretention = \"*/2 * * * * *\"\n";
    let daemon = Daemon::start(&program, expiring);
    // Each stream and month can expire in its own commit.
    let is_new = |(now, held): &(String, String)| *now != published && now == held;
    wait_for("a table without expired rows", || rows(&program).filter(is_new));
    daemon.end();
    assert_eq!(faults(&program, 0), []);
    assert!(!directory(&program, "sessions").is_dir(), "the daemon publishes no table for the first time");
}

#[test]
fn the_scheduled_check_names_damage_of_a_table() {
    let (_service, program) = read_once();
    super::tables::publish(&program, &[]);
    let path = newest(&program, "connections");
    fs::copy(&path, path.with_file_name("v2.metadata.json")).unwrap();
    let daemon = Daemon::start(&program, "[schedule]\nverify = \"*/2 * * * * *\"\n");
    wait_for("a check that finds it", || daemon.metric("annals_verify_faults").filter(|faults| *faults >= 1.0));
    let first = status(&daemon)["verify"]["first"].clone();
    assert!(first.as_str().unwrap().starts_with("TABLE tables/connections/metadata/v2"), "{first}");
    daemon.end();
}

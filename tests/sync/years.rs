//! Sessions of past years: one file a year, for any order of syncs, and with late events.

use crate::common;
use crate::faulty_service;

use std::collections::BTreeMap;
use std::process::Command;

use common::python::python_with_duckdb;
use faulty_service::laws::files_agree;
use faulty_service::{DAY, Event, Expected, HOUR, Kind, Program, Service, World, hold_with, program, scene};

/// 2024-10-02T00:00:00Z
const OCTOBER: i64 = DAY - 769 * 24 * HOUR;
const SINCE: [&str; 2] = ["--since", "2024-10-01"];

/// Some events on every fifth day of two years.
fn years(world: &mut World) {
    for day in (0..769).step_by(5) {
        for n in 0..3 {
            world.connection(OCTOBER + day * 24 * HOUR + n * 900, n);
        }
    }
    world.fill(DAY, 0..4);
    world.teams[0].events.retain(|event| event.kind != Kind::Billing);
}

fn hold(service: &Service, program: &Program) {
    hold_with(service, program, &Expected { requests_max: 9_000, arguments: &SINCE, ..Expected::default() });
    files_agree(program);
}

/// The sealed session files by month and first letter of the role.
fn sealed(program: &Program) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let live = program::live_files(program, "sessions");
    for path in program::sealed_files(&program.archive(), "sessions").iter().filter(|path| live.contains(path)) {
        let month = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let letter = &path.file_name().unwrap().to_str().unwrap()["20260920t000000z-".len()..][..1];
        *found.entry(format!("{month} {letter}")).or_insert(0) += 1;
    }
    found
}

fn entries(names: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    names.into_iter().map(|name| (name, 1)).collect()
}

/// Two years, and the months of the current one.
fn expected() -> BTreeMap<String, usize> {
    let months = (1..=10).map(|month| format!("month=2026-{month:02} m"));
    entries(["month=2024-01 m".to_owned(), "month=2025-01 m".to_owned()].into_iter().chain(months))
}

fn sessions(program: &Program) -> Vec<serde_json::Value> {
    program.sql("select * from sessions order by all")
}

#[test]
fn each_past_year_is_one_file_and_late_events_find_their_sessions() {
    let (service, program) = scene();
    years(&mut service.world());
    program.sync(&SINCE).ended(0);
    assert_eq!(sealed(&program), expected());
    hold(&service, &program);
    let before = sessions(&program);
    // Add an event to a session of 2025, and a new session of that year.
    let device = service.world().teams[0].computers[0].clone();
    let of_year = |event: &&Event| event.text.contains("\"connectionID\":\"conn-80\"");
    let begun = service.world().teams[0].events.iter().find(of_year).unwrap().at;
    let at = i64::try_from(begun / 1_000_000_000).unwrap() + 3_600;
    let text = format!(
        "{{\"id\":\"late\",\"timestamp\":{},\"deviceID\":\"{device}\",\"connectionClosedEvent\":\
         {{\"associatedIncomingConnectionEvent\":{{\"connectionID\":\"conn-80\"}}}}}}",
        at * 1_000
    );
    service.world().add(Kind::Connections, i128::from(at) * 1_000_000_000, Some(&device), text);
    for n in 0..3 {
        service.world().connection(at + 40 * 24 * HOUR + 77, n);
    }
    program.sync(&["--rescan"]).ended(0);
    hold(&service, &program);
    let after = sessions(&program);
    let changed: Vec<&serde_json::Value> = after.iter().filter(|row| !before.contains(row)).collect();
    let touched = changed.iter().filter(|row| row["connection_id"] == "conn-80").count();
    assert!(touched == 1 && changed.len() >= 2 && after.len() + 1 == before.len() + changed.len(), "{changed:?}");
    let late = program.sql("select event_count from sessions where connection_id = 'conn-80'");
    assert_eq!(late[0]["event_count"], 4);
    let files = sealed(&program);
    assert_eq!(files.get("month=2025-01 m"), Some(&1), "{files:?}");
    // The second verifier accepts the years too.
    if let Some(python) = python_with_duckdb("the second verifier on years") {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/second_verifier.py");
        let output = Command::new(python).arg(script).arg(program.archive()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "no fault\n");
    }
    // A single reading of the whole history gives the same files.
    let whole = Program::of(&service);
    whole.sync(&SINCE).ended(0);
    assert_eq!(sessions(&whole), after);
}

/// An archive that grows over the years equals one that reads all years at once.
#[test]
fn sessions_of_a_year_become_one_file_at_its_end() {
    let (service, program) = scene();
    years(&mut service.world());
    // 2024-12-31, 2025-01-03, 2026-01-06 and today.
    for (days, years) in [(90, 0), (97, 1), (461, 2), (772, 2)] {
        service.set_clock(OCTOBER + days * 24 * HOUR + 12 * HOUR);
        program.sync(&SINCE).ended(0);
        let files = sealed(&program);
        let whole = files.keys().filter(|name| ["month=2024-01 m", "month=2025-01 m"].contains(&name.as_str())).count();
        let of_over =
            files.keys().filter(|name| name.starts_with("month=2024") || years == 2 && name.starts_with("month=2025"));
        assert!(years == 0 || whole >= years && of_over.count() == years, "after {days} days: {files:?}");
    }
    assert_eq!(sealed(&program), expected());
    hold(&service, &program);
}

//! The requested ranges, and the archive as months pass: parts, windows, sealed months.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::faulty_service;

use faulty_service::laws::{archived, files_agree, findings};
use faulty_service::{Action, DAY, Expected, HOUR, Program, SINCE, Service, World, hold, hold_with, program, scene};

const NOON: i64 = DAY + 84 * HOUR;
/// 2026-10-20T00:00:00Z
const OCTOBER: i64 = DAY - 21 * 24 * HOUR;
const SINCE_OCTOBER: [&str; 2] = ["--since", "2026-10-20"];

#[test]
fn an_earlier_since_extends_the_archive() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&["--since", "2026-11-13"]).ended(0);
    let rows = archived(&program);
    program.sync(&["--since", "2026-11-12T05:00:00Z"]).ended(0);
    assert_ne!(archived(&program), rows);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &[]);
    hold(&service, &program, &["--since", "2026-11-12"]);
}

#[test]
fn until_leaves_later_windows_unread() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&[&SINCE[..], &["--until", "2026-11-12"]].concat()).ended(0);
    let latest = program.sql("select count(*)::int as n from connections where event_time >= '2026-11-12'");
    assert_eq!(latest[0]["n"], 0);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn streams_and_teams_can_be_read_one_by_one() {
    let (service, program) = scene();
    service.world().add_team("team-two");
    service.world().fill(DAY, 0..4);
    for n in 0..20 {
        service.world().connection_of(1, 1, DAY + n * HOUR, n);
        service.world().activity_of(1, DAY + n * HOUR, n);
    }
    for team in ["team-two", "team-one"] {
        for stream in ["billing", "connections", "activity", "inventory"] {
            program.sync(&[&SINCE[..], &["--team", team, "--stream", stream]].concat()).ended(0);
        }
    }
    let before = program.ledger_lines();
    program.sync(&SINCE).ended(0);
    assert_eq!(program.ledger_lines(), before);
    hold(&service, &program, &SINCE);
    program.sync(&["--team", "team-three"]).ended(2).says(&["team-three", "did you mean team-one"]);
    hold(&service, &program, &SINCE);
}

/// Adds events on every second day of three weeks in October, and on the days of `scene`.
fn months(world: &mut World) {
    for day in (0..21).step_by(2) {
        world.fill(OCTOBER, day..day + 1);
    }
    world.teams[0].events.retain(|event| event.kind != faulty_service::Kind::Billing);
    world.fill(DAY, 0..4);
}

#[test]
fn a_sealed_month_has_the_same_rows_and_accepts_late_events() {
    let (service, program) = scene();
    months(&mut service.world());
    program.sync(&SINCE_OCTOBER).ended(0);
    hold(&service, &program, &SINCE_OCTOBER);
    files_agree(&program);
    let sealed = program::sealed_files(&program.archive(), "");
    assert!(sealed.iter().any(|path| path.to_string_lossy().contains("month=2026-10")), "{sealed:?}");
    // Add an event to the sealed month after every re-scan, and edit one of its events.
    service.world().connection(OCTOBER + 30 * HOUR, 1);
    service.world().activity(OCTOBER + 31 * HOUR, 1);
    let number = service.world().teams[0].events.iter().find(|event| event.text.contains("\"host\"")).unwrap().number;
    service.world().edit(number, |text| text.replace("\"host\"", "\"renamed\""));
    program.sync(&["--rescan"]).ended(0);
    hold(&service, &program, &SINCE_OCTOBER);
    files_agree(&program);
    assert!(sealed.iter().all(|path| path.is_file()), "a sealed file is never removed or changed");
    assert!(!findings(&program, "late").is_empty() && !findings(&program, "changed_upstream").is_empty());
}

#[test]
fn windows_of_other_lengths_hold_the_same_rows() {
    for (scenario, text) in [
        ("hours", "[windows]\nlength = \"1h\"\n"),
        ("no re-scans", "[windows]\nrescan = []\nlag = \"0s\"\n"),
        ("weeks", "[windows]\nlength = \"7d\"\nlag = \"2h\"\n"),
    ] {
        println!("{scenario}");
        let (service, program) = scene();
        program.configure(text);
        months(&mut service.world());
        program.sync(&SINCE_OCTOBER).ended(0);
        for clock in [85, 100, 300] {
            service.world().connection(DAY + clock * HOUR - 7, 9);
            service.set_clock(DAY + clock * HOUR);
            program.sync(&SINCE_OCTOBER).ended(0);
        }
        let expected = Expected { requests_max: 2_500, arguments: &SINCE_OCTOBER, ..Expected::default() };
        hold_with(&service, &program, &expected);
        files_agree(&program);
    }
}

#[test]
fn a_change_of_the_windows_between_two_runs_loses_nothing() {
    let (service, program) = scene();
    months(&mut service.world());
    for (length, clock) in [("1d", 84), ("6h", 90), ("7d", 100), ("1h", 101), ("1d", 300)] {
        println!("windows of {length}");
        program.configure(&format!("[windows]\nlength = \"{length}\"\n"));
        service.world().connection(DAY + clock * HOUR - 7, 9);
        service.world().activity(DAY + clock * HOUR - 3_000, 9);
        service.set_clock(DAY + clock * HOUR);
        program.sync(&SINCE_OCTOBER).ended(0);
    }
    hold_with(&service, &program, &Expected { requests_max: 2_500, arguments: &SINCE_OCTOBER, ..Expected::default() });
}

#[test]
fn a_clock_that_runs_ahead_once_loses_no_event_that_is_still_visible() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    service.set_clock(NOON + 30 * HOUR);
    program.sync(&SINCE).ended(0);
    // The clock was wrong: new events lie in windows that looked settled.
    for hours in [1, 20, 40] {
        service.world().connection(NOON + hours * HOUR, 1);
        service.world().activity(NOON + hours * HOUR, 1);
        service.set_clock(NOON + hours * HOUR + 60);
        program.sync(&SINCE).ended(0);
    }
    service.set_clock(NOON + 300 * HOUR);
    program.sync(&SINCE).ended(0);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

/// Pages of a thousand, and more events than one commit holds.
#[test]
fn a_long_backfill_commits_in_parts_and_continues_after_a_kill() {
    let service = Service::at(NOON);
    let program = Program::of(&service);
    for n in 0..110_000 {
        service.world().connection_of(0, 0, DAY + n * 2, n % 1_000);
    }
    let running = program.start_sync(&SINCE);
    // The first lines record the archive's beginning and add no events.
    running.watch(|| program.ledger_lines() > 2);
    let run = running.kill_after(std::time::Duration::ZERO);
    let first = service.requests_count();
    println!("killed: {:?}, after {first} requests", run.code);
    service.on_request(|_, _, _| Action::Serve);
    program.sync(&SINCE).ended(0);
    let second = service.requests_count() - first;
    let anew = Program::of(&service);
    anew.sync(&SINCE).ended(0);
    let whole = service.requests_count() - first - second;
    let is_shorter = second * 10 < whole * 9;
    assert!(
        run.code.is_some() || is_shorter,
        "{second} requests after the kill, {first} before, {whole} for a whole reading"
    );
    hold_with(&service, &program, &Expected { requests_max: 900, arguments: &SINCE, ..Expected::default() });
}

#[test]
fn a_reader_beside_a_writer_sees_only_whole_commits() {
    let (service, program) = scene();
    months(&mut service.world());
    program.sync(&SINCE_OCTOBER).ended(0);
    let count = || program.sql("select count(*)::int as n from connections")[0]["n"].as_i64().unwrap();
    let mut seen = vec![count()];
    for hour in 85..95 {
        for n in 0..10 {
            service.world().connection(DAY + hour * HOUR - 100 + n, n);
        }
        service.set_clock(DAY + hour * HOUR);
        let running = program.start_sync(&SINCE_OCTOBER);
        seen.push(count());
        seen.push(count());
        running.wait().ended(0);
        seen.push(count());
    }
    assert!(seen.is_sorted() && seen.iter().all(|n| (n - seen[0]) % 10 == 0), "{seen:?}");
    hold(&service, &program, &SINCE_OCTOBER);
}

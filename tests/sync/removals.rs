//! Events that the service deletes or hides before a reading: a gap records which, when and why.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::faulty_service;

use faulty_service::laws::{findings, open_gaps, word};
use faulty_service::{Action, Answer, DAY, Expected, HOUR, Program, Request, SINCE, World, hold, hold_with, scene};
use serde_json::Value;

pub const COMPUTER: &str = "team-one-computer-2";
pub const NOON: i64 = DAY + 84 * HOUR;

pub fn expecting<'a>(gaps: &'a [(&'a str, &'a str)]) -> Expected<'a> {
    Expected { gaps, requests_max: 400, arguments: &SINCE, ..Expected::default() }
}

pub fn seconds(gap: &Value, column: &str) -> i64 {
    gap[column].as_i64().unwrap() / 1_000_000_000
}

#[test]
fn a_computer_removed_since_the_last_read_leaves_a_gap() {
    for is_shown in [true, false] {
        println!("shown by activity: {is_shown}");
        let (service, program) = scene();
        service.world().fill(DAY, 0..4);
        program.sync(&SINCE).ended(0);
        service.world().connection_of(0, 1, NOON + 600, 1);
        service.world().connection_of(0, 0, NOON + 700, 1);
        service.world().remove_computer(COMPUTER, NOON + 1_800, is_shown);
        service.set_clock(NOON + HOUR);
        program.sync(&SINCE).ended(3).says(&["gap"]);
        // The next reading walks open windows from their start.
        program.sync(&SINCE).ended(0);
        hold_with(&service, &program, &expecting(&[("connections", COMPUTER)]));
        let gap = &open_gaps(&program)[0];
        let (from, to) = (seconds(gap, "from_ns"), seconds(gap, "to_ns"));
        // Events may still appear within the lag.
        assert!((NOON - 960..=NOON - 840).contains(&from), "{gap}");
        assert!(if is_shown { to == NOON + 1_800 } else { (NOON + 1_800..=NOON + HOUR + 60).contains(&to) }, "{gap}");
        assert!(!word(gap, "reason").is_empty());
        // Archived events stay after they disappear from the service, also after every re-scan.
        service.set_clock(NOON + 200 * HOUR);
        program.sync(&SINCE).ended(0);
        hold_with(&service, &program, &expecting(&[("connections", COMPUTER)]));
    }
}

#[test]
fn a_computer_removed_during_the_first_reading_leaves_a_gap() {
    for (request_number, is_shown) in [(3, true), (6, true), (9, false), (12, true), (15, false)] {
        println!("at connection request {request_number}, shown by activity: {is_shown}");
        let (service, program) = scene();
        service.world().fill(DAY, 0..4);
        for n in 0..100 {
            service.world().connection_of(0, usize::try_from(n % 3).unwrap(), DAY + 30 * HOUR + n, 1);
        }
        service.world().behaviour.cap = Some(20);
        let mut seen = 0;
        service.on_request(move |_, request, world: &mut World| {
            seen += usize::from(request.is_connections());
            if seen == request_number && request.is_connections() {
                world.remove_computer(COMPUTER, NOON + 1, is_shown);
                world.now = NOON + 2;
            }
            Action::Serve
        });
        let run = program.sync(&SINCE);
        assert!(matches!(run.code, Some(0 | 3)), "{run:?}");
        service.calm();
        service.set_clock(NOON + HOUR + 600);
        let later = program.sync(&SINCE);
        assert!(run.code == Some(3) || later.code == Some(3), "{run:?}\n{later:?}");
        let standing = open_gaps(&program);
        assert!(standing.iter().all(|gap| word(gap, "subject") == COMPUTER), "{standing:?}");
        hold_with(&service, &program, &expecting(&[("connections", COMPUTER)]));
    }
}

#[test]
fn a_computer_that_was_removed_before_the_first_reading_is_the_archives_beginning() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    service.world().remove_computer(COMPUTER, NOON - HOUR, true);
    service.world().teams[0].events.retain(|event| !event.removed);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    assert!(!findings(&program, "archive_begins").is_empty());
}

#[test]
fn an_added_computer_leaves_no_gap() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    service.world().teams[0].computers.push("team-one-computer-9".into());
    service.world().connection_of(0, 3, NOON + 600, 1);
    service.set_clock(NOON + HOUR);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn reading_that_falls_behind_the_plans_span_leaves_a_gap() {
    let (service, program) = scene();
    service.world().team("team-one").plan_span = Some(5 * 86_400);
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    // After ten days without a reading, the service no longer shows the first events after the last reading.
    service.world().fill(DAY, 5..14);
    service.set_clock(NOON + 240 * HOUR);
    program.sync(&SINCE).ended(3).says(&["gap"]);
    let gaps = open_gaps(&program);
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    let (from, to) = (seconds(&gaps[0], "from_ns"), seconds(&gaps[0], "to_ns"));
    assert!(from <= NOON + 60 && (to - (NOON + 120 * HOUR)).abs() <= 60, "{gaps:?}");
    let subject = word(&gaps[0], "subject");
    hold_with(&service, &program, &expecting(&[("connections", subject.as_str())]));
}

#[test]
fn a_first_reading_of_the_whole_span_begins_the_archive_without_a_gap() {
    let (service, program) = scene();
    service.world().team("team-one").plan_span = Some(60 * HOUR);
    service.world().fill(DAY, 1..4);
    let horizon = NOON - 60 * HOUR;
    let of_before = |at: i128| at < faulty_service::laws::nanos(horizon + HOUR);
    service.world().teams[0].events.retain(|event| !of_before(event.at));
    program.sync(&[]).ended(0);
    hold(&service, &program, &[]);
    let begins = findings(&program, "archive_begins");
    assert!(!begins.is_empty(), "{begins:?}");
}

#[test]
fn a_reading_every_few_hours_near_the_plans_span_loses_nothing() {
    let (service, program) = scene();
    service.world().team("team-one").plan_span = Some(30 * HOUR);
    for hours in (84..140).step_by(7) {
        for n in 0..5 {
            service.world().connection(DAY + hours * HOUR - n * 300 - 1, n);
        }
        service.set_clock(DAY + hours * HOUR);
        program.sync(&["--since", "2026-11-13"]).ended(0);
    }
    hold_with(
        &service,
        &program,
        &Expected { requests_max: 600, arguments: &["--since", "2026-11-13"], ..Expected::default() },
    );
}

fn two_teams() -> (faulty_service::Service, Program) {
    let (service, program) = scene();
    service.world().add_team("team-two");
    service.world().fill(DAY, 0..4);
    for n in 0..20 {
        service.world().connection_of(1, 0, DAY + 20 * HOUR + n, 1);
    }
    (service, program)
}

#[test]
fn a_vanished_team_does_not_affect_the_others() {
    let (service, program) = two_teams();
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    let gone = service.world().teams.remove(1);
    service.world().connection(NOON + 10, 0);
    service.set_clock(NOON + 60);
    program.sync(&SINCE).ended(3).says(&["the archive holds it, but the token does not see it"]);
    // Its archived events stay.
    service.world().teams.push(gone);
    hold(&service, &program, &SINCE);
}

#[test]
fn a_computer_that_is_removed_and_added_again_leaves_a_gap() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    service.world().connection_of(0, 1, NOON + 600, 1);
    service.world().remove_computer(COMPUTER, NOON + 1_800, true);
    service.world().teams[0].computers.insert(1, COMPUTER.into());
    service.world().connection_of(0, 1, NOON + 2_000, 1);
    service.set_clock(NOON + HOUR);
    program.sync(&SINCE).ended(3);
    hold_with(&service, &program, &expecting(&[("connections", COMPUTER)]));
}

#[test]
fn a_computer_that_vanishes_from_the_deprecated_history_leaves_a_gap() {
    let (service, program) = scene();
    service.world().behaviour.team_connections = false;
    for n in 0..60_u64 {
        let at = DAY + 20 * HOUR + i64::try_from(n).unwrap() * 600;
        let device = format!("team-one-computer-{}", n % 3 + 1);
        let text = faulty_service::events::connection_deprecated(10_000 + n, at * 1_000);
        service.world().add(faulty_service::Kind::Connections, faulty_service::laws::nanos(at), Some(&device), text);
    }
    let mut is_gone = false;
    service.on_request(move |_, request, world| {
        if request.path.contains("computer-1/history") && !is_gone {
            is_gone = true;
            world.now += 60;
            world.remove_computer(COMPUTER, NOON + 30, true);
        }
        Action::Serve
    });
    // The missing history is an error of this run; the next run does not request this computer.
    program.sync(&SINCE).ended(1).says(&["404", "1 gaps"]);
    service.calm();
    service.set_clock(NOON + HOUR);
    program.sync(&SINCE).ended(0);
    hold_with(&service, &program, &expecting(&[("connections", COMPUTER)]));
}

/// A late event disappears with its computer before the re-scan.
#[test]
fn a_late_event_of_a_removed_computer_lies_in_the_gap() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    service.world().connection_of(0, 1, NOON - 600, 1);
    service.world().remove_computer(COMPUTER, NOON + 300, true);
    service.set_clock(NOON + HOUR);
    program.sync(&SINCE).ended(3);
    // The next reading walks open windows from their start.
    program.sync(&SINCE).ended(0);
    hold_with(&service, &program, &expecting(&[("connections", COMPUTER)]));
    let reasons: Vec<_> = open_gaps(&program).iter().map(|gap| word(gap, "reason")).collect();
    assert!(reasons.iter().any(|reason| reason.contains("not read")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("only if they appeared late")), "{reasons:?}");
}

#[test]
fn reports_name_a_computer_removed_before_the_first_reading() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    service.world().remove_computer(COMPUTER, NOON - HOUR, true);
    service.world().teams[0].events.retain(|event| !event.removed);
    program.sync(&SINCE).ended(0);
    assert_eq!(findings(&program, "removed_before").get(COMPUTER), Some(&1));
    let health = program.run(&[
        "report",
        "run",
        "R23",
        "--from",
        "2026-11-10",
        "--to",
        "2026-11-21",
        "--format",
        "json",
        "--bare",
    ]);
    let rows: Value = serde_json::from_str(&health.stdout).unwrap();
    let rows =
        rows.as_array().unwrap().iter().filter(|row| row["removed_before"] == 1 && row["source"] == "connections");
    assert!(rows.count() >= 2, "{}", health.stdout);
    assert!(health.stderr.contains("removed before: Team team-one connections"), "{}", health.stderr);
}

/// Whether the request is for connections of the second `at`.
pub fn is_about(request: &Request, at: i64) -> bool {
    let span = request.number("startTime").unwrap_or(i64::MAX)..request.number("stopTime").unwrap_or(i64::MIN);
    request.is_connections() && span.contains(&at)
}

/// An early event of the open day disappears before each later page: no walk reaches the events of the computer.
#[test]
fn a_computer_removed_after_a_reading_that_never_reached_it_leaves_a_gap() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..3);
    service.set_clock(DAY + 73 * HOUR);
    program.sync(&SINCE).ended(0);
    let used = NOON - 2 * HOUR;
    let mut early: Vec<u64> = (0..200).map(|n| service.world().connection_of(0, 0, DAY + 74 * HOUR + n, 1)).collect();
    for n in 0..200 {
        service.world().connection_of(0, 2, DAY + 76 * HOUR + n, 1);
    }
    let lost: Vec<u64> = (0..10).map(|n| service.world().connection_of(0, 1, used + n, 1)).collect();
    service.world().behaviour.cap = Some(20);
    service.set_clock(NOON);
    early.reverse();
    service.on_request(move |_, request, world: &mut World| {
        if is_about(request, used)
            && request.number("offset") > Some(0)
            && let Some(number) = early.pop()
        {
            world.delete(number);
        }
        Action::Serve
    });
    program.sync(&SINCE).ended(3).says(&["Annals did not read an open window completely"]);
    assert!(!lost.iter().any(|number| service.world().event(*number).served));
    service.calm();
    service.world().remove_computer(COMPUTER, NOON + 60, true);
    service.set_clock(NOON + HOUR);
    program.sync(&SINCE).ended(3).says(&["gap"]);
    // The next reading walks open windows from their start.
    program.sync(&SINCE).ended(0);
    hold_with(&service, &program, &expecting(&[("connections", COMPUTER)]));
}

/// For two hours, the service shows an empty day. The computer is used and removed in this time.
#[test]
fn a_computer_removed_while_the_service_shows_nothing_leaves_a_gap() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    service.on_request(|_, request, _: &mut World| match is_about(request, NOON) {
        true => Action::Answer(Answer::of(200, "{\"deviceEvents\":[],\"hasMoreEvents\":false}".to_owned())),
        false => Action::Serve,
    });
    service.world().connection_of(0, 1, NOON + 1_800, 1);
    for minutes in [20, 40, 60, 80, 100] {
        service.world().activity(NOON + minutes * 60 - 30, 1);
        service.set_clock(NOON + minutes * 60);
        program.sync(&SINCE).ended(3).says(&["Annals did not read an open window completely"]);
    }
    assert!(!findings(&program, "silence").is_empty());
    service.world().remove_computer(COMPUTER, NOON + 110 * 60, true);
    service.set_clock(NOON + 115 * 60);
    program.sync(&SINCE).ended(3).says(&["gap"]);
    service.calm();
    service.set_clock(NOON + 130 * 60);
    program.sync(&SINCE).ended(0);
    hold_with(&service, &program, &Expected { requests_max: 1_000, ..expecting(&[("connections", COMPUTER)]) });
}

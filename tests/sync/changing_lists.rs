//! Lists that change during a reading, and events that come late, change or disappear.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::faulty_service;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use faulty_service::chance::times;
use faulty_service::laws::findings;
use faulty_service::{
    Action, Answer, Chance, DAY, Expected, HOUR, Kind, Program, Request, SINCE, Service, World, hold, hold_with, scene,
};

/// In the middle of a settled window.
const BUSY: i64 = DAY + 37 * HOUR;
/// After this many hours, the windows of `scene` are past their last re-scan.
const LONG_AFTER: i64 = DAY + (96 + 73) * HOUR;

/// This many connection events, one a second, on pages of twenty.
fn pages(world: &mut World, from: i64, count: i64) -> Vec<u64> {
    world.behaviour.cap = Some(20);
    (0..count).map(|n| world.connection_of(0, usize::try_from(n % 3).unwrap(), from + n, n % 1_000)).collect()
}

/// Whether the request is for a later page of the window of `at`.
fn is_later_page(request: &Request, at: i64) -> bool {
    let span = request.number("startTime").unwrap_or(i64::MAX)..request.number("stopTime").unwrap_or(i64::MIN);
    request.is_connections() && span.contains(&at) && request.number("offset") > Some(0)
}

#[test]
fn insertions_and_deletions_between_the_pages_of_a_settled_window() {
    for (scenario, inserts, deletes) in [("insertions", true, false), ("deletions", false, true), ("both", true, true)]
    {
        println!("{scenario}");
        let (service, program) = scene();
        let first = pages(&mut service.world(), BUSY, 130);
        let mut changes = 0;
        service.on_request(move |_, request, world| {
            if is_later_page(request, BUSY) && changes < 6 {
                changes += 1;
                if inserts {
                    world.connection(BUSY - changes, 0);
                }
                if deletes {
                    world.delete(first[usize::try_from(changes).unwrap() * 3]);
                }
            }
            Action::Serve
        });
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    }
}

#[test]
fn insertions_and_deletions_between_the_pages_of_an_open_window() {
    let (service, program) = scene();
    let open = DAY + 75 * HOUR;
    let first = pages(&mut service.world(), open, 130);
    let mut changes = 0;
    service.on_request(move |_, request, world| {
        if is_later_page(request, open) && changes < 6 {
            changes += 1;
            world.connection(open - changes, 0);
            world.delete(first[usize::try_from(changes).unwrap() * 4]);
        }
        Action::Serve
    });
    program.sync(&SINCE).ended(0);
    service.calm();
    service.set_clock(DAY + 97 * HOUR);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

/// A change happens at each of the first requests; after a quiet time the archive equals the truth.
fn moving_list(seed: u64) {
    let (service, program) = scene();
    let mut chance = Chance::of(seed);
    {
        let mut world = service.world();
        world.fill(DAY, 0..4);
        pages(&mut world, BUSY, 60 + i64::try_from(chance.below(60)).unwrap());
        pages(&mut world, DAY + 80 * HOUR, 60);
        world.behaviour.cap = Some(9 + usize::try_from(chance.below(30)).unwrap());
    }
    let mut changes = 0;
    service.on_request(move |_, request, world| {
        if request.is_history() && changes < 40 && chance.below(3) == 0 {
            changes += 1;
            change_something(world, &mut chance);
        }
        Action::Serve
    });
    for _ in 0..2 {
        // 3: the list of the open window changed at each read.
        let run = program.sync(&SINCE);
        assert!(matches!(run.code, Some(0 | 3)), "{run:?}");
    }
    service.calm();
    for clock in [97, 122, 169, 169] {
        service.set_clock(DAY + clock * HOUR);
        program.sync(&SINCE).ended(0);
    }
    hold_with(&service, &program, &Expected { requests_max: 1_500, arguments: &SINCE, ..Expected::default() });
}

fn change_something(world: &mut World, chance: &mut Chance) {
    let at =
        [BUSY, DAY + 80 * HOUR][usize::try_from(chance.below(2)).unwrap()] + i64::try_from(chance.below(120)).unwrap();
    match chance.below(3) {
        0 => _ = world.connection(at, i64::try_from(chance.below(1_000)).unwrap()),
        1 => _ = world.activity(at, i64::try_from(chance.below(1_000_000_000)).unwrap()),
        _ => {
            let alive: Vec<u64> = world.teams[0]
                .events
                .iter()
                .filter(|event| event.alive && event.kind == Kind::Connections)
                .map(|event| event.number)
                .collect();
            world.delete(alive[usize::try_from(chance.below(alive.len() as u64)).unwrap()]);
        }
    }
}

#[test]
fn changes_at_any_request() {
    for seed in 0..times("ANNALS_SEEDS", 10) {
        println!("seed {seed}");
        moving_list(seed);
    }
}

#[test]
fn an_event_late_within_the_lag_is_no_finding() {
    let service = Service::at(DAY + 24 * HOUR + 300);
    let program = Program::of(&service);
    service.world().fill(DAY, 0..1);
    program.sync(&SINCE).ended(0);
    service.world().connection(DAY + 24 * HOUR - 30, 500);
    service.world().activity(DAY + 10 * HOUR, 1);
    service.set_clock(DAY + 24 * HOUR + 1_200);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    assert!(findings(&program, "late").is_empty());
}

#[test]
fn events_late_beyond_the_lag_are_read_by_the_re_scans() {
    let service = Service::at(DAY + 24 * HOUR + 1_200);
    let program = Program::of(&service);
    service.world().fill(DAY, 0..1);
    program.sync(&SINCE).ended(0);
    for hours in [1, 24, 72] {
        service.world().connection(DAY + hours * 60, 7);
        service.world().activity(DAY + 24 * HOUR - hours, 7);
        service.set_clock(DAY + 24 * HOUR + hours * HOUR + 60);
        program.sync(&SINCE).ended(0);
        // A window that changed at its last re-scan gets one more re-scan.
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    }
    assert!(findings(&program, "late").values().sum::<i64>() >= 6, "{:?}", findings(&program, "late"));
}

#[test]
fn events_after_the_last_re_scan_are_read_with_rescan() {
    let service = Service::at(DAY + 24 * HOUR + 80 * HOUR);
    let program = Program::of(&service);
    service.world().fill(DAY, 0..2);
    program.sync(&SINCE).ended(0);
    let rows = faulty_service::laws::archived(&program);
    let late = service.world().connection(DAY + 5 * HOUR, 5);
    service.world().activity(DAY + 5 * HOUR, 5);
    program.sync(&[&SINCE[..], &["--rescan"]].concat()).ended(0);
    assert_ne!(faulty_service::laws::archived(&program), rows, "event {late} is read");
    hold(&service, &program, &SINCE);
    assert!(!findings(&program, "late").is_empty());
}

#[test]
fn the_same_id_with_other_content_is_another_revision() {
    // 30: an open window; 90: a settled window at its re-scan.
    for hours in [80, 20] {
        println!("an event of hour {hours}");
        let (service, program) = scene();
        let number = service.world().connection(DAY + hours * HOUR, 1);
        service.world().fill(DAY, 0..2);
        program.sync(&SINCE).ended(0);
        let edited = service.world().edit(number, |text| text.replace("\"host\"", "\"renamed\""));
        service.set_clock(LONG_AFTER);
        program.sync(&SINCE).ended(0);
        // A window that changed at its last re-scan gets one more re-scan.
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
        let query =
            format!("select revision, computer_host_name from connections where event_id = 'ce-{number}' order by 1");
        let rows: Vec<String> = program.sql(&query).iter().map(ToString::to_string).collect();
        let row = |revision, host| format!("{{\"revision\":{revision},\"computer_host_name\":\"{host}\"}}");
        let sorted = |text: &str| text.contains("renamed");
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(sorted(&rows[1]) && !sorted(&rows[0]), "event {edited}: {rows:?}, not {}", row(2, "renamed"));
        assert!(!findings(&program, "changed_upstream").is_empty());
    }
}

#[test]
fn both_bodies_of_an_event_that_changes_between_two_pages_are_kept() {
    let (service, program) = scene();
    let numbers = pages(&mut service.world(), BUSY, 60);
    let mut is_edited = false;
    service.on_request(move |_, request, world| {
        if is_later_page(request, BUSY) && !is_edited {
            is_edited = true;
            world.edit(numbers[3], |text| text.replace("\"host\"", "\"renamed\""));
        }
        Action::Serve
    });
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    assert!(!findings(&program, "changed_upstream").is_empty());
}

#[test]
fn a_vanished_event_stays_and_is_a_finding() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..3);
    let number = service.world().connection(DAY + 50 * HOUR, 1);
    program.sync(&SINCE).ended(0);
    service.world().delete(number);
    service.set_clock(LONG_AFTER);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    assert!(!findings(&program, "no_longer_served").is_empty());
}

#[test]
fn a_future_event_moves_no_checkpoint() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..3);
    service.world().connection(DAY + (84 + 48) * HOUR, 3);
    service.world().activity(DAY + (84 + 70) * HOUR, 3);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    for clock in [90, 100, 133, 160] {
        service.world().connection(DAY + clock * HOUR - 100, 1);
        service.world().activity(DAY + clock * HOUR - 100, 1);
        service.set_clock(DAY + clock * HOUR);
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    }
}

#[test]
fn an_event_seen_only_in_the_padding_is_kept() {
    let service = Service::at(DAY + 24 * HOUR + 1_200);
    let program = Program::of(&service);
    service.world().fill(DAY, 0..1);
    program.sync(&SINCE).ended(0);
    let mut seen = None;
    service.on_request(move |_, request, world| {
        let is_rescan = request.is_connections() && request.number("startTime") < Some(DAY - 1);
        match seen {
            // After the open window was read.
            None if is_rescan => seen = Some(world.connection(DAY + 24 * HOUR + 30, 0)),
            Some(number) if number > 0 => {
                world.delete(number);
                seen = Some(0);
            }
            _ => {}
        }
        Action::Serve
    });
    service.set_clock(DAY + 25 * HOUR + 60);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

/// One event an hour. While `is_reworded`, each answer has another text of each event.
fn reworded(service: &Service, from: i64, is_reworded: &Arc<AtomicBool>) {
    let is_reworded = is_reworded.clone();
    service.on_request(move |number, request, world| {
        if !request.is_connections() {
            return Action::Serve;
        }
        let of = |name: &str| request.number(name).unwrap();
        let word = if is_reworded.load(Ordering::SeqCst) { number } else { 0 };
        let hours = (from..world.now).step_by(3_600).filter(|at| (of("startTime")..=of("stopTime")).contains(at));
        let page = hours.skip(usize::try_from(of("offset")).unwrap()).take(usize::try_from(of("limit")).unwrap());
        let event = |at: i64| {
            let computer = &world.teams[0].computers[0];
            let what = format!("\"computerHostName\":\"{word}\",\"connectionClosedEvent\":{{}}");
            format!("{{\"id\":\"e{at}\",\"timestamp\":{at}000,\"deviceID\":\"{computer}\",{what}}}")
        };
        let events: Vec<String> = page.map(event).collect();
        Action::Answer(Answer::of(200, format!("{{\"deviceEvents\":[{}],\"hasMoreEvents\":false}}", events.join(","))))
    });
}

/// The cost of a list whose texts change at every answer: no two readings agree, and no range is ever confirmed.
#[test]
fn a_list_that_always_changes_takes_a_bounded_number_of_requests() {
    const DAYS: i64 = 30;
    // 32 ranges may fail; the program walks each six times with two requests, and reads some once more.
    const SPLITTING_MAX: usize = 32 * 14;
    // After that, the program walks a range twice and reads it once more. A day has two ranges at most.
    const DAYS_MAX: usize = 6 * 2 * 34;
    let (service, program) = scene();
    let is_reworded = Arc::new(AtomicBool::new(true));
    reworded(&service, DAY - DAYS * 24 * HOUR, &is_reworded);
    let arguments = ["--since", "2026-10-11", "--stream", "connections"];
    for round in ["the first", "the next"] {
        let before = service.requests_count();
        program.sync(&arguments).ended(3).says(&["connections changed at each read", "remain open"]);
        let asked = service.requests_count() - before;
        println!("{round} round: {asked} requests");
        assert!((200..SPLITTING_MAX + DAYS_MAX).contains(&asked), "{asked} requests in {round} round");
    }
    program.run(&["status"]).ended(0).says(&["changes at each read and remains open"]);
    is_reworded.store(false, Ordering::SeqCst);
    let before = service.requests_count();
    program.sync(&arguments).ended(0);
    assert!(service.requests_count() - before < 300, "{} requests", service.requests_count() - before);
    let held = "select count(distinct event_id)::bigint as n from connections where computer_host_name = '0'";
    assert_eq!(program.sql(held)[0]["n"], DAYS * 24 + 84);
    assert!(faulty_service::laws::open_gaps(&program).is_empty(), "a later reading closes the gap");
}

//! Computers that come and go between two lists.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use serde_json::Value;

use crate::faulty_service;

use faulty_service::laws::open_gaps;
use faulty_service::{Action, Answer, DAY, HOUR, Request, SINCE, Service, World, hold_with, scene};

use crate::removals::{COMPUTER, NOON, expecting, is_about, seconds};

/// A computer is added, used and removed between two runs: no list ever shows it.
#[test]
fn a_computer_that_no_list_showed_leaves_a_gap() {
    let unknown = ("connections", "unknown_computer");
    for (payload, is_added, expected) in [
        (r#"{"deviceID":"guest-1"}"#, false, ("connections", "guest-1")),
        (r#"{"device":{"id":"guest-1","name":"Guest"}}"#, true, ("connections", "guest-1")),
        (r#"{"name":"Guest"}"#, true, ("connections", "guest-1")),
        (r#"{"name":"Guest"}"#, false, unknown),
    ] {
        println!("{payload}, added: {is_added}");
        let (service, program) = scene();
        service.world().fill(DAY, 0..4);
        program.sync(&SINCE).ended(0);
        guest(&mut service.world(), NOON + 600, is_added);
        service.world().remove_computer_saying("guest-1", NOON + 900, payload);
        service.set_clock(NOON + HOUR);
        program.sync(&SINCE).ended(3).says(&["gap"]);
        hold_with(&service, &program, &expecting(&[expected]));
        let gap = &open_gaps(&program)[0];
        assert_eq!(seconds(gap, "to_ns"), NOON + 900, "{gap}");
    }
}

/// A computer of a few minutes, with an event.
fn guest(world: &mut World, at: i64, is_shown: bool) {
    if is_shown {
        let added = r#"{"deviceID":"guest-1","name":"Guest"}"#;
        let text = faulty_service::events::activity_event("teamDeviceAddedEvent", at * 1_000_000_000, added);
        world.add(faulty_service::Kind::Activity, faulty_service::laws::nanos(at), None, text);
    }
    let text = faulty_service::events::connection(77_001, (at + 60) * 1_000, "guest-1");
    world.add(faulty_service::Kind::Connections, faulty_service::laws::nanos(at + 60), Some("guest-1"), text);
}

/// A computer is added, used and removed during the backfill.
#[test]
fn a_computer_that_was_added_and_removed_during_the_first_reading_leaves_a_gap() {
    for request_number in [1, 4, 9] {
        println!("at connection request {request_number}");
        let (service, program) = scene();
        service.world().fill(DAY, 0..4);
        service.world().behaviour.cap = Some(20);
        let mut seen = 0;
        service.on_request(move |_, request, world: &mut World| {
            seen += usize::from(request.is_connections());
            if seen == request_number && request.is_connections() {
                guest(world, NOON - 50, false);
                world.remove_computer_saying("guest-1", NOON + 20, r#"{"deviceID":"guest-1"}"#);
                world.now = NOON + 30;
            }
            Action::Serve
        });
        let first = program.sync(&SINCE);
        service.calm();
        service.set_clock(NOON + HOUR + 600);
        let later = program.sync(&SINCE);
        assert!(first.code == Some(3) || later.code == Some(3), "{first:?}\n{later:?}");
        hold_with(&service, &program, &expecting(&[("connections", "guest-1")]));
    }
}

/// A list of the computers, and no history of them.
fn is_list(request: &Request) -> bool {
    request.path.ends_with("/devices") && !request.is_connections()
}

/// At the next list, after the connections were read: the computer is used once more and removed, and activity shows nothing.
fn vanish_at_the_next_list(service: &Service, device: &'static str) {
    let mut is_gone = false;
    service.on_request(move |_, request, world| {
        if is_list(request) && !is_gone {
            is_gone = true;
            let at = world.now - 20;
            let text = faulty_service::events::connection(77_002, at * 1_000, device);
            world.add(faulty_service::Kind::Connections, faulty_service::laws::nanos(at), Some(device), text);
            world.remove_computer(device, at + 10, false);
        }
        Action::Serve
    });
}

/// Only connections that were read prove that the computer existed.
#[test]
fn a_computer_that_vanishes_after_a_reading_and_before_a_list_leaves_a_gap() {
    for is_shown in [true, false] {
        println!("activity shows the addition: {is_shown}");
        let (service, program) = scene();
        service.world().fill(DAY, 0..4);
        program.sync(&SINCE).ended(0);
        guest(&mut service.world(), NOON + 600, is_shown);
        service.set_clock(NOON + 900);
        vanish_at_the_next_list(&service, "guest-1");
        program.sync(&SINCE).ended(0);
        service.calm();
        service.set_clock(NOON + 1_200);
        program.sync(&SINCE).ended(3).says(&["gap"]);
        // The next reading walks open windows from their start.
        program.sync(&SINCE).ended(0);
        hold_with(&service, &program, &expecting(&[("connections", "guest-1")]));
    }
}

/// The computer vanishes between two pages. Only readings before its first connection are proved.
#[test]
fn a_computer_that_vanishes_during_the_reading_that_first_shows_it_leaves_a_gap() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    guest(&mut service.world(), NOON + 600, false);
    for n in 0..30 {
        service.world().connection_of(0, 2, NOON + 700 + n, 1);
    }
    let unread = faulty_service::events::connection(77_003, (NOON + 900) * 1_000, "guest-1");
    let at = faulty_service::laws::nanos(NOON + 900);
    let unread = service.world().add(faulty_service::Kind::Connections, at, Some("guest-1"), unread);
    service.world().behaviour.cap = Some(20);
    service.set_clock(NOON + HOUR);
    let mut pages = 0;
    service.on_request(move |_, request, world| {
        pages += usize::from(is_about(request, NOON));
        if pages == 2 {
            world.remove_computer("guest-1", NOON + HOUR, false);
        }
        Action::Serve
    });
    program.sync(&SINCE).ended(0);
    assert!(!service.world().event(unread).served);
    service.calm();
    service.set_clock(NOON + HOUR + 600);
    program.sync(&SINCE).ended(3).says(&["gap"]);
    program.sync(&SINCE).ended(0);
    hold_with(&service, &program, &expecting(&[("connections", "guest-1")]));
}

/// The service hides the list of computers from the token.
#[test]
fn a_service_that_never_lists_a_computer_leaves_no_gap() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    service.on_request(|_, request, _: &mut World| match is_list(request) {
        true => Action::Answer(Answer::of(200, "{\"devices\":[]}".to_owned())),
        false => Action::Serve,
    });
    for minutes in [0, 20, 40] {
        service.set_clock(NOON + minutes * 60);
        program.sync(&SINCE).ended(0);
    }
    assert_eq!(open_gaps(&program), [Value::Null; 0]);
}

#[test]
fn a_known_computer_that_is_added_again_and_vanishes_before_a_list_leaves_a_second_gap() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..4);
    program.sync(&SINCE).ended(0);
    service.world().remove_computer(COMPUTER, NOON + 600, true);
    service.set_clock(NOON + 900);
    program.sync(&SINCE).ended(3);
    service.world().teams[0].computers.insert(1, COMPUTER.into());
    service.world().connection_of(0, 1, NOON + 1_000, 1);
    service.set_clock(NOON + 1_200);
    vanish_at_the_next_list(&service, COMPUTER);
    program.sync(&SINCE).ended(0);
    service.calm();
    service.set_clock(NOON + 1_500);
    program.sync(&SINCE).ended(3).says(&["gap"]);
    let until: Vec<i64> = open_gaps(&program).iter().map(|gap| seconds(gap, "to_ns")).collect();
    assert!(until.contains(&(NOON + 600)) && until.iter().any(|to| *to >= NOON + 1_190), "{until:?}");
}

//! False, stuck and shrinking paging, dense seconds, and equal events.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::faulty_service;

use faulty_service::laws::findings;
use faulty_service::{DAY, Expected, HOUR, Kind, More, Next, Order, SINCE, World, events, hold, hold_with, scene};

/// An hour past noon of the first day.
const BUSY: i64 = DAY + 13 * HOUR;

#[test]
fn a_second_with_more_events_than_a_page_is_complete() {
    for count in [1_001, 1_002, 2_003, 2_500] {
        println!("{count} in one second");
        let (service, program) = scene();
        service.world().fill(DAY, 0..2);
        for n in 0..count {
            service.world().connection(BUSY, n % 1_000);
            service.world().activity(BUSY, n * 1_000);
        }
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    }
}

#[test]
fn a_second_with_ten_thousand_events_is_complete() {
    let (service, program) = scene();
    for n in 0..10_000 {
        service.world().connection_of(0, usize::try_from(n % 3).unwrap(), BUSY, n / 10);
    }
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn the_last_open_second_may_be_fuller_than_a_page() {
    let (service, program) = scene();
    let now = service.world().now;
    for n in 0..1_500 {
        service.world().connection(now, n % 1_000);
    }
    program.sync(&SINCE).ended(0);
    for n in 0..1_500 {
        service.world().connection(now, n % 1_000);
    }
    service.set_clock(now + 60);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn all_twins_are_kept() {
    // With pages of 20, the second group of twins crosses a page's end.
    for cap in [None, Some(20)] {
        let (service, program) = scene();
        let mut world = service.world();
        world.behaviour.cap = cap;
        for (at, count) in [(BUSY, 3), (BUSY + 10, 45), (BUSY + 20, 2), (DAY + 80 * HOUR, 30)] {
            for _ in 0..count {
                let text = events::plain_activity(at * 1_000_000_000);
                world.add(Kind::Activity, faulty_service::laws::nanos(at), None, text);
            }
        }
        // Connection events without an id are equal too.
        for _ in 0..25 {
            let text = events::connection_without_id(7, BUSY * 1_000, "team-one-computer-1");
            world.add(Kind::Connections, faulty_service::laws::nanos(BUSY), Some("team-one-computer-1"), text);
        }
        drop(world);
        program.sync(&SINCE).ended(0);
        // The program accepts twins of an open window across a page's end if two walks agree.
        service.set_clock(DAY + 97 * HOUR);
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    }
}

#[test]
fn an_event_with_an_id_that_is_listed_twice_is_one_event() {
    for cap in [None, Some(7)] {
        let (service, program) = scene();
        let mut world = service.world();
        world.behaviour.cap = cap;
        world.fill(DAY, 0..4);
        let chosen: Vec<u64> =
            world.teams[0].events.iter().filter(|e| e.kind == Kind::Connections).map(|e| e.number).collect();
        chosen.iter().step_by(5).for_each(|number| world.event(*number).shown = 2);
        drop(world);
        program.sync(&SINCE).ended(0);
        hold_with(&service, &program, &Expected { requests_max: 400, arguments: &SINCE, ..Expected::default() });
    }
}

/// About a hundred events, some in the open window.
fn some(world: &mut World) {
    world.fill(DAY, 0..4);
    for n in 0..150 {
        world.connection(BUSY + n / 7, n);
        world.activity(DAY + 73 * HOUR + n / 9, n);
    }
}

#[test]
fn false_paging_claims_lose_nothing() {
    for (more, next) in [
        (More::Always(false), Next::True),
        (More::Always(true), Next::True),
        (More::Absent, Next::Absent),
        (More::Null, Next::Null),
        (More::True, Next::Stuck),
        (More::Always(true), Next::Stuck),
        (More::Always(true), Next::Backwards),
        (More::Always(true), Next::Zero),
        (More::Always(false), Next::Absurd),
    ] {
        println!("hasMoreEvents {more:?}, nextOffset {next:?}");
        let (service, program) = scene();
        some(&mut service.world());
        {
            let behaviour = &mut service.world().behaviour;
            (behaviour.more, behaviour.next, behaviour.cap) = (more, next, Some(60));
        }
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
        let is_lie = (more, next) != (More::Absent, Next::Absent) && (more, next) != (More::Null, Next::Null);
        assert!(!is_lie || !findings(&program, "paging_anomaly").is_empty(), "the false claim is recorded");
    }
}

#[test]
fn offsets_that_count_hidden_events_lose_nothing() {
    for (hidden, at) in [(60, DAY + 60), (150, DAY + 60), (60, BUSY + 30)] {
        println!("{hidden} hidden events at {at}, pages of 60");
        let (service, program) = scene();
        let mut world = service.world();
        some(&mut world);
        world.behaviour.cap = Some(60);
        for n in 0..hidden {
            let number = world.connection(at, n);
            world.event(number).shown = 0;
        }
        drop(world);
        program.sync(&SINCE).ended(0);
        hold_with(&service, &program, &Expected { requests_max: 1_000, arguments: &SINCE, ..Expected::default() });
    }
}

#[test]
fn pages_may_be_shorter_than_requested() {
    // Also pages shorter than the overlap of two pages.
    for cap in [100, 11, 9, 8, 5, 3, 2] {
        println!("pages of {cap}");
        let (service, program) = scene();
        some(&mut service.world());
        service.world().behaviour.cap = Some(cap);
        program.sync(&SINCE).ended(0);
        let requests_max = if cap > 10 { 400 } else { 4_000 };
        hold_with(&service, &program, &Expected { requests_max, arguments: &SINCE, ..Expected::default() });
    }
}

#[test]
fn pages_of_one_event_lose_nothing_in_silence() {
    let (service, program) = scene();
    service.world().fill(DAY, 0..1);
    service.world().behaviour.cap = Some(1);
    let run = program.sync(&SINCE);
    if run.code == Some(0) {
        hold_with(&service, &program, &Expected { requests_max: 2_000, arguments: &SINCE, ..Expected::default() });
    } else {
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(service.requests_count() < 2_000, "{} requests", service.requests_count());
    }
}

#[test]
fn a_refused_limit_is_learned() {
    for limit_max in [1_000, 999, 500, 100] {
        println!("limits above {limit_max} are refused");
        let (service, program) = scene();
        some(&mut service.world());
        service.world().behaviour.limit_max = limit_max;
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
        let refused = |limit: Option<i64>| limit.is_some_and(|limit| limit > i64::try_from(limit_max).unwrap());
        let last = service.requests().iter().rposition(|request| refused(request.number("limit")));
        assert!(last.is_some());
    }
}

#[test]
fn a_page_of_large_events_is_read_in_small_pages() {
    let (service, program) = scene();
    let mut world = service.world();
    world.fill(DAY, 0..1);
    let payload = "x".repeat(1 << 20);
    for n in 0..66 {
        let at = (BUSY + n) * 1_000_000_000;
        let text = format!(
            "{{\"header\":{{\"eventTimestampUnixNano\":{at}}},\"teamUserAddedEvent\":{{\"x\":\"{payload}\"}}}}"
        );
        world.add(Kind::Activity, faulty_service::laws::nanos(BUSY + n), None, text);
    }
    drop(world);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

#[test]
fn any_order_of_a_list_loses_nothing() {
    for (order, cap) in [
        (Order::NewestFirst, None),
        (Order::NewestFirst, Some(40)),
        (Order::Scattered, None),
        (Order::Scattered, Some(40)),
    ] {
        println!("{order:?}, pages of {cap:?}");
        let (service, program) = scene();
        some(&mut service.world());
        (service.world().behaviour.order, service.world().behaviour.cap) = (order, cap);
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
        // Later events appear anywhere in the list.
        for n in 0..50 {
            service.world().connection(DAY + 84 * HOUR + n, n);
        }
        service.set_clock(DAY + 85 * HOUR);
        program.sync(&SINCE).ended(0);
        hold_with(&service, &program, &Expected { requests_max: 400, arguments: &SINCE, ..Expected::default() });
    }
}

//! Billing shows only its ten newest entries: a gap records the entries that the program missed between two polls.
#![allow(clippy::print_stdout, reason = "a failed test shows the scenario")]

use crate::awkward;

use awkward::laws::{findings, nanos, open_gaps};
use awkward::{DAY, Expected, HOUR, Kind, Program, SINCE, Service, hold, hold_with, scene};

const NOON: i64 = DAY + 84 * HOUR;

fn polled(entries: i64) -> (Service, Program) {
    let (service, program) = scene();
    for n in 0..entries {
        service.world().billing(DAY + n * HOUR);
    }
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    (service, program)
}

/// Adds this many entries in the hour before the next poll.
fn later(service: &Service, entries: i64) {
    for n in 0..entries {
        service.world().billing(NOON + 60 + n * 30);
    }
    service.set_clock(NOON + HOUR);
}

#[test]
fn new_entries_join_while_an_old_one_is_still_shown() {
    for (before, new) in [(0, 3), (3, 4), (10, 1), (10, 9), (9, 9), (4, 6)] {
        println!("{new} after {before}");
        let (service, program) = polled(before);
        later(&service, new);
        program.sync(&SINCE).ended(0);
        hold(&service, &program, &SINCE);
    }
}

#[test]
fn an_overrun_is_a_gap() {
    for new in [10, 11, 25] {
        println!("{new} new");
        let (service, program) = polled(10);
        later(&service, new);
        program.sync(&SINCE).ended(3).says(&["gap"]);
        let gaps = open_gaps(&program);
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        let subject = gaps[0]["subject"].as_str().unwrap();
        let expected = [("billing", subject)];
        hold_with(&service, &program, &Expected { gaps: &expected, arguments: &SINCE, ..Expected::default() });
    }
}

#[test]
fn the_entries_before_the_first_poll_are_the_archives_beginning() {
    let (service, program) = scene();
    for n in 0..10 {
        service.world().billing(DAY + n * HOUR);
    }
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    assert!(!findings(&program, "archive_begins").is_empty());
}

#[test]
fn an_edited_entry_is_another_revision() {
    let (service, program) = polled(10);
    let number = service.world().teams[0].events[6].number;
    service.world().edit(number, |text| text.replace("userCountUpdated", "paymentFailed"));
    later(&service, 2);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    let rows =
        program.sql(&format!("select revision, event_type from billing where event_id = 'bill-{number}' order by 1"));
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!((&rows[1]["revision"], &rows[1]["event_type"]), (&2.into(), &"paymentFailed".into()));
    assert!(!findings(&program, "changed_upstream").is_empty());
}

#[test]
fn equal_entries_without_ids_are_counted_and_hidden_ones_are_a_gap() {
    let (service, program) = scene();
    let entry = |name: &str| format!("{{\"timestamp\":{},\"event\":{{\"{name}\":{{}}}}}}", DAY + HOUR);
    for n in 0..10 {
        let text = entry(["userAdded", "userRemoved"][n % 2]);
        service.world().add(Kind::Billing, nanos(DAY + HOUR), None, text);
    }
    let expected = Expected { gaps: &[("billing", "billing")], arguments: &SINCE, ..Expected::default() };
    program.sync(&SINCE).ended(3).says(&["gap"]);
    hold_with(&service, &program, &expected);
    let gap = &open_gaps(&program)[0];
    let at = |column: &str| gap[column].as_i64().map(i128::from);
    let second = (Some(nanos(DAY + HOUR)), Some(nanos(DAY + HOUR + 1)));
    assert_eq!((at("from_ns"), at("to_ns")), second, "the gap is the second that they all have");
    for name in ["paymentFailed", "paymentSucceeded"] {
        let text = format!("{{\"timestamp\":{},\"event\":{{\"{name}\":{{}}}}}}", NOON + 5);
        service.world().add(Kind::Billing, nanos(NOON + 5), None, text);
    }
    service.set_clock(NOON + 60);
    program.sync(&SINCE).ended(0);
    hold_with(&service, &program, &expected);
    assert!(!findings(&program, "ambiguous_overlap").is_empty());
}

#[test]
fn a_shrinking_billing_list_removes_nothing() {
    let (service, program) = polled(10);
    let numbers: Vec<u64> = service.world().teams[0].events.iter().map(|event| event.number).collect();
    numbers[5..].iter().for_each(|number| service.world().delete(*number));
    service.set_clock(NOON + HOUR);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
    service.world().billing(NOON + HOUR);
    service.set_clock(NOON + 2 * HOUR);
    program.sync(&SINCE).ended(0);
    hold(&service, &program, &SINCE);
}

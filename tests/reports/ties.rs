//! Events of the same microsecond: a report gives the same answer at every run, and each engine the same one.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::reporting;

use std::time::Duration;

use annals::archive::{Draft, WindowRows};
use annals::model::{ConnectionDetail, Detail, EventRow, Instant, Stream, TeamId, WindowGrid};
use reporting::{DAY, Place, at};
use serde_json::{Value, json};

fn event(id: &str, is_success: bool, time: Instant, change: impl FnOnce(&mut ConnectionDetail)) -> EventRow {
    let mut detail = ConnectionDetail {
        connection_id: Some(id.into()),
        device_id: Some("d1".into()),
        peer_ip: Some("203.0.113.9".into()),
        ..ConnectionDetail::default()
    };
    change(&mut detail);
    EventRow {
        team_id: "acme".into(),
        event_id: id.into(),
        time,
        event_type: if is_success { "authSucceededEvent" } else { "authFailedEvent" }.into(),
        revision: 1,
        first_seen_at: time.plus(DAY),
        redacted: false,
        raw: format!("{{\"id\":\"{id}\"}}").into(),
        detail: Detail::Connections(detail.into()),
        served_digest: None,
    }
}

/// The connections of the successes that R03 finds. All events are on one day.
fn guessed(rows: Vec<EventRow>, params: &[&str]) -> Vec<Value> {
    let place = Place::empty();
    let window = WindowGrid::new(DAY).window_of(rows[0].time);
    let rows = vec![WindowRows::new(Stream::Connections, window, rows, true)];
    let mut writer = place.opened().writer(&TeamId::from("acme")).unwrap();
    let _ = writer.commit(Draft { rows, ..Draft::default() }, at("2026-11-20T12:00:00Z")).unwrap();
    let period = ["--from", "2026-10-01", "--to", "2026-11-01", "--format", "json"];
    let outcome = place.run(&[&["report", "run", "r03"], &period[..], params].concat());
    outcome.json()["rows"].as_array().unwrap().iter().map(|row| row["connection_id"].clone()).collect()
}

/// The nanoseconds put the smaller id first, and then last: neither the first nor the last row in a file is always right.
#[test]
fn a_failure_before_two_successes_at_once_belongs_to_the_smaller_id() {
    let mut rows = Vec::new();
    for (minute, (early, late)) in [("a", "b"), ("b", "a")].into_iter().enumerate() {
        let time = at("2026-10-05T10:00:00Z").plus(Duration::from_secs(3_600 * minute as u64));
        rows.push(event(&format!("fail-{minute}"), false, time, |_| ()));
        for (id, nanos) in [(early, 100), (late, 200)] {
            let at_once = time.plus(Duration::from_nanos(5_000_000_000 + nanos));
            rows.push(event(&format!("{id}{minute}"), true, at_once, |_| ()));
        }
    }
    assert_eq!(guessed(rows, &["--param", "min_failures=1"]), [json!("a0"), json!("a1")]);
}

/// Only with many failures does the engine choose the join that took two missing addresses of one moment for equal.
#[test]
fn a_missing_address_is_not_the_address_of_a_success_at_once() {
    let (time, second) = (at("2026-10-05T01:00:00Z"), Duration::from_secs(1));
    let nowhere = |email: &'static str| {
        move |detail: &mut ConnectionDetail| {
            detail.peer_ip = None;
            detail.peer_email = Some(email.into());
        }
    };
    let elsewhere = |detail: &mut ConnectionDetail| detail.device_id = Some("d2".into());
    let mut rows: Vec<EventRow> =
        (0..20_000).map(|nth| event(&format!("f{nth}"), false, time.plus(second * nth), elsewhere)).collect();
    rows.push(event("late", true, time.plus(second * 40_000), elsewhere));
    for nth in 1..3 {
        rows.push(event(&format!("bob{nth}"), false, time.plus(second * nth), nowhere("bob@own.example")));
    }
    rows.push(event("carl", false, time.plus(second * 5), nowhere("carl@own.example")));
    rows.push(event("bob", true, time.plus(second * 5), nowhere("bob@own.example")));
    assert_eq!(guessed(rows, &[]), Vec::<Value>::new());
}

//! Events of the same microsecond: a report gives the same answer at every run, and each engine the same one.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::reporting;

use std::time::Duration;

use annals::archive::{Draft, WindowRows};
use annals::model::{ConnectionDetail, Detail, EventRow, Instant, Stream, TeamId, WindowGrid};
use reporting::{DAY, Place, at};
use serde_json::json;

fn event(id: &str, connection: &str, is_success: bool, time: Instant) -> EventRow {
    let detail = ConnectionDetail {
        connection_id: Some(connection.into()),
        device_id: Some("d1".into()),
        peer_ip: Some("203.0.113.9".into()),
        ..ConnectionDetail::default()
    };
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

/// The nanoseconds put the smaller id first, and then last: neither the first nor the last row in a file is always right.
#[test]
fn a_failure_before_two_successes_at_once_belongs_to_the_smaller_id() {
    let place = Place::empty();
    let mut rows = Vec::new();
    for (minute, (early, late)) in [("a", "b"), ("b", "a")].into_iter().enumerate() {
        let time = at("2026-10-05T10:00:00Z").plus(Duration::from_secs(3_600 * minute as u64));
        rows.push(event(&format!("fail-{minute}"), &format!("f-{minute}"), false, time));
        for (id, nanos) in [(early, 100), (late, 200)] {
            let at_once = time.plus(Duration::from_nanos(5_000_000_000 + nanos));
            rows.push(event(&format!("{id}-{minute}"), &format!("{id}{minute}"), true, at_once));
        }
    }
    let window = WindowGrid::new(DAY).window_of(rows[0].time);
    let rows = vec![WindowRows::new(Stream::Connections, window, rows, true)];
    let mut writer = place.opened().writer(&TeamId::from("acme")).unwrap();
    let _ = writer.commit(Draft { rows, ..Draft::default() }, at("2026-11-20T12:00:00Z")).unwrap();
    let period = ["--from", "2026-10-01", "--to", "2026-11-01", "--param", "min_failures=1", "--format", "json"];
    let outcome = place.run(&[&["report", "run", "r03"], &period[..]].concat());
    let found: Vec<_> =
        outcome.json()["rows"].as_array().unwrap().iter().map(|row| row["connection_id"].clone()).collect();
    assert_eq!(found, [json!("a0"), json!("a1")], "{}", outcome.stderr);
}

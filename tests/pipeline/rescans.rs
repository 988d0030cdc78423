//! Rounds over a small team in virtual time: re-scans find what appeared or changed after a window was settled.

use std::sync::Arc;
use std::time::Duration;

use annals::archive::{FindingKind, WindowState};
use annals::model::{EventId, RawEvent, ServedTime, Stream};
use annals::pipeline::{Settings, status};

use crate::common::team_world::{Ask, World, at, connection, entry};

const NINETEENTH: &str = "2026-11-19T00:00:00Z";

fn settings() -> Settings {
    Settings { since: Some(at(NINETEENTH)), ..Settings::default() }
}

fn holds(world: &World, id: &str) -> bool {
    world.held(Stream::Connections).iter().any(|text| text.contains(id))
}

/// A day of 30,000 connections, which was settled; then an event of its last seconds appears.
async fn busy_day() -> Arc<World> {
    let world = World::new("2026-11-20T00:20:00Z");
    for n in 0..30_000 {
        let time = at(NINETEENTH).plus(Duration::from_millis(n * 2_880)).to_string();
        world.team().connections.push(connection(&format!("c{n}"), "d1", &time));
    }
    world.sync(&settings()).await;
    world.team().connections.push(connection("late", "d1", "2026-11-19T23:59:50Z"));
    world.set_now("2026-11-20T01:30:00Z");
    world
}

/// Each process remembers nothing of the former one.
#[tokio::test]
async fn a_re_scan_longer_than_a_run_continues_in_the_next_run() {
    let world = busy_day().await;
    world.on_ask(|ask, team| {
        if matches!(ask, Ask::Page(query) if query.stream == Stream::Connections) {
            team.now = team.now.plus(Duration::from_secs(1));
        }
        None
    });
    let one_at_a_time = Settings { concurrency: 1, ..settings() };
    let mut runs = 0;
    while world.window(Stream::Connections, NINETEENTH).rescans == 0 {
        runs += 1;
        assert!(runs < 40, "a re-scan without an end");
        let began = world.team().now;
        let round = world.run(&one_at_a_time, Duration::from_secs(10)).await;
        assert!(round.failures.is_empty(), "{:?}", round.failures);
        let read_to = world.state().streams[&Stream::Connections].read_points.last().unwrap().read_to;
        assert!(began <= read_to, "the re-scan withholds the read point: {read_to}, not {began}");
    }
    assert!(runs > 2, "{runs} runs");
    assert!(holds(&world, "late"));
    let window = world.window(Stream::Connections, NINETEENTH);
    assert_eq!((window.rescans, window.late, window.confirmed.len()), (1, 1, 0));
}

#[tokio::test]
async fn a_shorter_list_of_re_scans_leaves_no_window_open() {
    for hours in [&[72][..], &[1], &[]] {
        let world = World::new("2026-11-20T00:20:00Z");
        world.team().connections.push(connection("one", "d1", "2026-11-19T10:00:00Z"));
        world.team().billing.push(entry("b1", "2026-11-19T11:00:00Z"));
        for now in ["2026-11-20T00:20:00Z", "2026-11-20T01:30:00Z", "2026-11-21T00:30:00Z"] {
            world.set_now(now);
            world.sync(&settings()).await;
        }
        assert_eq!(world.window(Stream::Connections, NINETEENTH).rescans, 2);
        world.team().connections.push(connection("late", "d1", "2026-11-19T12:00:00Z"));
        world.set_now("2026-11-23T00:30:00Z");
        let rescan = hours.iter().map(|hours| Duration::from_secs(hours * 3600)).collect();
        let shorter = Settings { rescan, ..settings() };
        world.sync(&shorter).await;
        assert!(holds(&world, "late"), "{hours:?}");
        // A change on the last re-scan needs one more re-scan.
        world.sync(&shorter).await;
        for stream in Stream::ALL {
            assert_eq!(world.window(stream, NINETEENTH).state, WindowState::Sealed, "{stream} {hours:?}");
        }
    }
}

#[tokio::test]
async fn a_changed_event_is_not_late() {
    let world = World::new("2026-11-20T00:20:00Z");
    world.team().connections.push(connection("one", "d1", "2026-11-19T10:00:00Z"));
    world.sync(&settings()).await;
    world.team().connections[0] = connection("one", "d2", "2026-11-19T10:00:00Z");
    world.set_now("2026-11-23T00:30:00Z");
    let round = world.sync(&settings()).await;
    let window = world.window(Stream::Connections, NINETEENTH);
    assert_eq!((round.committed.late, window.late, window.events), (0, 0, 2));
    assert_eq!(world.state().streams[&Stream::Connections].learned_lag_seconds, 0);
    assert_eq!(world.findings(FindingKind::ChangedUpstream).len(), 1);
    assert!(world.findings(FindingKind::Late).is_empty());
    assert_eq!(window.state, WindowState::Settled, "a change needs one more re-scan");
    world.sync(&settings()).await;
    assert_eq!(world.window(Stream::Connections, NINETEENTH).state, WindowState::Sealed);
}

/// The newest event of an open window, and entries of billing that stay in their window or leave it.
#[tokio::test]
async fn a_billing_entry_whose_time_is_corrected_is_a_revision() {
    let world = World::new("2026-11-20T10:00:00Z");
    let entries = |minute: &str, day: &str| {
        let corrected = |id: &str, time: &str| {
            let text = format!(r#"{{"id":"{id}","timestamp":"{time}","event":{{"paymentSucceeded":{{}}}}}}"#);
            RawEvent::new(text.into(), false, Some(EventId::from(id)), ServedTime::At(at(time)))
        };
        vec![
            corrected("b2", &format!("2026-11-20T08:0{minute}:00Z")),
            corrected("b1", &format!("2026-11-{day}T08:00:00Z")),
        ]
    };
    world.team().billing = entries("0", "18");
    world.sync(&settings()).await;
    world.team().billing = entries("1", "20");
    for now in ["2026-11-20T10:10:00Z", "2026-11-21T00:20:00Z", "2026-11-24T01:00:00Z"] {
        world.set_now(now);
        world.sync(&settings()).await;
    }
    let revisions = |stream, id| world.revisions(stream, id);
    assert_eq!((revisions(Stream::Billing, "b1"), revisions(Stream::Billing, "b2")), (vec![1, 2], vec![1, 2]));
    let mut changed: Vec<String> =
        world.findings(FindingKind::ChangedUpstream).into_iter().map(|finding| finding.subject).collect();
    changed.sort();
    assert_eq!(changed, ["b1", "b2"]);
}

/// The archive adds no row for a correction that is taken back, because two servers may alternate.
#[tokio::test]
async fn a_correction_that_is_taken_back_is_found_once() {
    let world = World::new("2026-11-20T10:00:00Z");
    let versions = ["paymentSucceeded", "paymentFailed"].map(|name| {
        let text = format!(r#"{{"id":"b1","event":{{"{name}":{{}}}}}}"#);
        RawEvent::new(text.into(), false, Some(EventId::from("b1")), ServedTime::At(at("2026-11-20T09:00:00Z")))
    });
    for (minute, version, findings) in [(0, 0, 0), (1, 1, 1), (2, 0, 2), (3, 1, 2), (4, 0, 2)] {
        world.set_now(&format!("2026-11-20T10:0{minute}:00Z"));
        world.team().billing = vec![versions[version].clone()];
        world.sync(&settings()).await;
        assert_eq!(world.findings(FindingKind::ChangedUpstream).len(), findings, "minute {minute}");
    }
    assert_eq!(world.revisions(Stream::Billing, "b1"), [1, 2]);
    let last = world.findings(FindingKind::ChangedUpstream).remove(1);
    assert_eq!(last.reason, "the service shows revision 1 of this id again, and no longer revision 2");
}

#[tokio::test]
async fn the_status_after_a_sync_until_a_day_is_read_to_that_day() {
    let world = World::new("2026-11-20T12:00:00Z");
    world.team().connections.push(connection("one", "d1", "2026-11-19T10:00:00Z"));
    world.sync(&settings()).await;
    world.set_now("2026-11-23T12:00:00Z");
    let until = at("2026-11-23T00:00:00Z");
    world.sync(&Settings { until: Some(until), ..settings() }).await;
    let status = status(&world.state(), at("2026-11-23T12:00:00Z"));
    let connections = status.streams.iter().find(|stream| stream.stream == Stream::Connections).unwrap();
    assert_eq!((connections.settled_to, connections.read_to), (Some(until), Some(until)));
    assert_eq!(connections.lag_seconds, Some(12 * 3600));
}

//! Rounds that do not read everything: they make no read point, or the gap of a later removal covers the unread part.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::archive::{FindingKind, WindowState};
use annals::model::{Instant, Stream};
use annals::pipeline::Settings;
use common::team_world::{Ask, World, activity, at, connection};

const NOON: &str = "2026-11-20T12:00:00Z";
/// The beginning of the lag at noon.
const LAG_BEFORE_NOON: &str = "2026-11-20T11:45:00Z";

fn settings() -> Settings {
    Settings { since: Some(at("2026-11-18T00:00:00Z")), ..Settings::default() }
}

/// A team whose computer `d1` has one event this morning, read at noon.
async fn read_once() -> Arc<World> {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.sync(&settings()).await;
    assert!(intervals(&world).is_empty());
    world
}

/// Removes a computer. Activity shows the removal.
fn remove(world: &World, device: &str, time: &str) {
    let mut team = world.team();
    team.connections.retain(|event| event.device != Some(device.into()));
    team.devices.retain(|id| *id != device);
    team.activity.push(activity("teamDeviceRemovedEvent", device, time));
}

/// The open gaps.
fn intervals(world: &World) -> Vec<(String, Instant, Instant)> {
    let state = world.state();
    state.gaps().map(|gap| (gap.subject.clone(), gap.from.unwrap(), gap.to.unwrap())).collect()
}

/// A second changes at each read, and the round still makes a read point. The gap of the second is closed later; the
/// gap of a computer that was removed in the meantime stays.
#[tokio::test]
async fn a_second_that_was_unstable_before_a_removal_stays_in_the_gap_of_the_computer() {
    for is_stable_before_activity in [false, true] {
        let world = World::new(NOON);
        let mut number = 0;
        world.on_ask(move |ask, team| {
            if matches!(ask, Ask::Page(query) if query.stream == Stream::Connections) {
                number += 1;
                team.connections = vec![connection(&format!("c{number}"), "d2", "2026-11-18T06:00:00.5Z")];
            }
            None
        });
        world.sync(&settings()).await;
        let unstable = ("unstable".to_owned(), at("2026-11-18T06:00:00Z"), at("2026-11-18T06:00:01Z"));
        assert_eq!(intervals(&world), std::slice::from_ref(&unstable));
        remove(&world, "d1", "2026-11-20T12:10:00Z");
        world.set_now("2026-11-20T12:30:00Z");
        if !is_stable_before_activity {
            world.sync(&settings()).await;
            assert!(intervals(&world).contains(&unstable));
        }
        world.calm();
        world.set_now("2026-11-20T12:40:00Z");
        world.sync(&settings()).await;
        let expected = [(unstable.1, unstable.2), (at(LAG_BEFORE_NOON), at("2026-11-20T12:10:00Z"))];
        let expected = expected.map(|(from, to)| ("d1".to_owned(), from, to));
        assert_eq!(intervals(&world), expected, "stable before activity: {is_stable_before_activity}");
        assert_eq!(world.findings(FindingKind::GapClosed).len(), 1);
    }
}

/// The only computer of the day is removed: from then on, the empty list of the day agrees with the archive.
#[tokio::test]
async fn a_day_without_the_events_of_a_removed_computer_is_read_whole() {
    let world = read_once().await;
    remove(&world, "d1", "2026-11-20T12:10:00Z");
    for minute in [30, 40] {
        let now = format!("2026-11-20T12:{minute}:00Z");
        world.set_now(&now);
        // New activity makes a commit, which writes the read point.
        world.team().activity.push(activity("someEvent", "", &now));
        world.sync(&settings()).await;
    }
    remove(&world, "d2", "2026-11-20T12:45:00Z");
    world.set_now("2026-11-20T12:50:00Z");
    world.sync(&settings()).await;
    let of_d2 = ("d2".to_owned(), at("2026-11-20T12:25:00Z"), at("2026-11-20T12:45:00Z"));
    assert!(intervals(&world).contains(&of_d2), "{:?}", intervals(&world));
    world.team().devices = vec!["d3"];
    for now in ["2026-11-21T00:30:00Z", "2026-11-21T00:40:00Z"] {
        world.set_now(now);
        world.sync(&settings()).await;
    }
    let day = world.window(Stream::Connections, "2026-11-20T00:00:00Z");
    assert_eq!((day.events, day.state), (1, WindowState::Settled));
}

/// Each page takes a minute. A computer is removed before the last page, which would have shown its event.
#[tokio::test]
async fn a_reading_ends_at_its_last_page() {
    let world = read_once().await;
    let start = at("2026-11-20T11:50:00Z");
    for n in 0..17_000 {
        let time = start.plus(Duration::from_millis(n * 100)).to_string();
        world.team().connections.push(connection(&format!("c{n}"), "d2", &time));
    }
    world.team().connections.push(connection("last", "d9", "2026-11-20T12:30:00Z"));
    world.set_now("2026-11-20T13:00:00Z");
    let removed = Arc::new(Mutex::new(None));
    let removed_at = removed.clone();
    world.on_ask(move |ask, team| {
        if let Ask::Page(query) = ask
            && query.stream == Stream::Connections
            && query.offset > 0
        {
            team.now = team.now.plus(Duration::from_secs(60));
            if query.offset > 16_500 && removed_at.lock().unwrap().is_none() {
                *removed_at.lock().unwrap() = Some(team.now);
                team.connections.retain(|event| event.id != Some("last".into()));
            }
        }
        None
    });
    world.sync(&settings()).await;
    assert!(intervals(&world).is_empty());
    world.calm();
    let removed = removed.lock().unwrap().unwrap();
    remove(&world, "d9", &removed.to_string());
    world.team().now = removed.plus(Duration::from_secs(1_200));
    world.sync(&settings()).await;
    assert_eq!(intervals(&world), [("d9".to_owned(), at(LAG_BEFORE_NOON), removed)]);
}

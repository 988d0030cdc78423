//! Rounds over a small team in virtual time: a loss makes a gap, and no other case does.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use annals::archive::{Finding, FindingKind, WindowState};
use annals::model::{Instant, RawEvent, ServedTime, Stream};
use annals::pipeline::Settings;
use common::team_world::{Ask, World, activity, at, connection, unavailable};

pub const NOON: &str = "2026-11-20T12:00:00Z";
/// The beginning of the lag at noon.
pub const LAG_BEFORE_NOON: &str = "2026-11-20T11:45:00Z";

pub fn settings() -> Settings {
    Settings { since: Some(at("2026-11-18T00:00:00Z")), ..Settings::default() }
}

pub fn gaps(world: &World) -> Vec<Finding> {
    world.state().gaps().cloned().collect()
}

pub async fn read_once() -> Arc<World> {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.sync(&settings()).await;
    assert!(gaps(&world).is_empty());
    world
}

/// Removes d1 at 12:10; activity shows the removal.
fn remove(world: &World, is_listed_again: bool) {
    let mut team = world.team();
    team.connections.clear();
    team.activity.push(activity("teamDeviceRemovedEvent", "d1", "2026-11-20T12:10:00Z"));
    if !is_listed_again {
        team.devices.retain(|id| *id != "d1");
    }
}

#[tokio::test]
async fn a_removal_is_recorded_although_its_round_failed() {
    for is_listed_again in [false, true] {
        let world = read_once().await;
        remove(&world, is_listed_again);
        world.set_now("2026-11-20T12:30:00Z");
        world.on_ask(|ask, _| matches!(ask, Ask::Devices).then(unavailable));
        assert!(!world.round(&settings()).await.failures.is_empty());
        world.calm();
        world.set_now("2026-11-20T12:50:00Z");
        world.sync(&settings()).await;
        let gaps = gaps(&world);
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        let interval = (gaps[0].subject.as_str(), gaps[0].from, gaps[0].to);
        assert_eq!(interval, ("d1", Some(at(LAG_BEFORE_NOON)), Some(at("2026-11-20T12:10:00Z"))));
        world.set_now("2026-11-20T12:51:00Z");
        world.sync(&settings()).await;
        assert_eq!(world.state().gaps().count(), 1);
    }
}

/// The `Date` of a reading is four minutes ahead, and the lag is shorter than that.
#[tokio::test]
async fn a_gap_of_a_removal_begins_before_every_possible_error_of_the_date() {
    let short = Settings { lag: Duration::from_secs(60), ..settings() };
    // It is 12:00.
    let world = World::new("2026-11-20T12:04:00Z");
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.sync(&short).await;
    remove(&world, false);
    world.set_now("2026-11-20T12:30:00Z");
    world.sync(&short).await;
    assert_eq!(intervals(&world), [("d1".to_owned(), at("2026-11-20T11:59:00Z"), at("2026-11-20T12:10:00Z"))]);
}

#[tokio::test]
async fn only_a_removal_of_a_computer_counts_as_one() {
    let world = read_once().await;
    world.set_now("2026-11-20T12:30:00Z");
    for name in ["teamGroupDeviceRemovedEvent", "teamDeviceUserRemovedEvent"] {
        world.team().activity.push(activity(name, "d1", "2026-11-20T12:10:00Z"));
    }
    world.sync(&settings()).await;
    assert!(gaps(&world).is_empty());
}

#[tokio::test]
async fn one_empty_list_of_computers_is_no_removal() {
    let world = read_once().await;
    world.set_now("2026-11-20T12:30:00Z");
    let mut number = 0;
    world.on_ask(move |ask, team| {
        if matches!(ask, Ask::Devices) {
            number += 1;
            team.devices = if number == 1 { Vec::new() } else { vec!["d1", "d2"] };
        }
        None
    });
    world.sync(&settings()).await;
    assert!(gaps(&world).is_empty());
    assert_eq!(world.state().devices.len(), 2);
}

/// Between two polls one event is deleted with its computer, and a late one takes its place in the list.
#[tokio::test]
async fn a_late_event_is_read_although_a_deletion_hid_it() {
    let world = World::new(NOON);
    world.team().connections.push(connection("gone", "d2", "2026-11-20T09:30:00Z"));
    for minute in 10..40 {
        world.team().connections.push(connection(&format!("n{minute}"), "d1", &format!("2026-11-20T10:{minute}:00Z")));
    }
    world.sync(&settings()).await;
    {
        let mut team = world.team();
        team.connections[0] = connection("late", "d1", "2026-11-20T09:30:00Z");
        team.devices.retain(|id| *id != "d2");
        team.activity.push(activity("teamDeviceRemovedEvent", "d2", "2026-11-20T12:01:00Z"));
    }
    for now in ["2026-11-20T12:05:00Z", "2026-11-20T12:10:00Z"] {
        world.set_now(now);
        world.sync(&settings()).await;
    }
    assert!(world.held(Stream::Connections).iter().any(|text| text.contains("late")));
}

#[tokio::test]
async fn the_removal_of_the_only_computer_leaves_no_open_window() {
    let world = World::new(NOON);
    world.team().devices = vec!["d1"];
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.sync(&settings()).await;
    remove(&world, false);
    for now in ["2026-11-20T12:30:00Z", "2026-11-20T12:40:00Z"] {
        world.set_now(now);
        world.sync(&settings()).await;
    }
    assert!(world.sync(&settings()).await.deferred.unread.is_empty());
    world.set_now("2026-11-21T01:00:00Z");
    world.sync(&settings()).await;
    assert_eq!(world.window(Stream::Connections, "2026-11-20T00:00:00Z").state, WindowState::Settled);
}

#[tokio::test]
async fn a_failing_list_of_computers_stops_connections_alone() {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.team().activity.push(activity("teamUpdatedEvent", "d1", "2026-11-20T10:00:00Z"));
    world.on_ask(|ask, _| matches!(ask, Ask::Devices).then(unavailable));
    assert!(!world.round(&settings()).await.failures.is_empty());
    assert_eq!((world.held(Stream::Activity).len(), world.held(Stream::Connections).len()), (1, 0));
    world.calm();
    world.sync(&settings()).await;
    assert_eq!(world.held(Stream::Connections).len(), 1);
}

#[tokio::test]
async fn a_computer_that_vanishes_during_the_first_reading_leaves_a_gap() {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-19T10:00:00Z"));
    let mut number = 0;
    world.on_ask(move |ask, team| {
        number += u32::from(matches!(ask, Ask::Page(query) if query.stream == Stream::Connections));
        if number == 2 {
            team.now = at("2026-11-20T12:00:02Z");
            team.connections.clear();
            team.devices.retain(|id| *id != "d1");
        }
        None
    });
    world.sync(&settings()).await;
    let gaps = gaps(&world);
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!((gaps[0].subject.as_str(), gaps[0].from), ("d1", Some(at("2026-11-18T00:00:00Z"))));
    assert_eq!(world.state().devices.len(), 1);
}

/// Activity shows an added or removed computer, in any payload shape.
fn activity_event(event_type: &str, payload: &str, time: &str) -> RawEvent {
    let text = format!(r#"{{"header":{{"at":"{time}"}},"{event_type}":{payload}}}"#);
    RawEvent::new(text.into(), false, None, ServedTime::At(at(time)))
}

pub fn intervals(world: &World) -> Vec<(String, Instant, Instant)> {
    gaps(world).into_iter().map(|gap| (gap.subject, gap.from.unwrap(), gap.to.unwrap())).collect()
}

/// A computer is added, used and removed between two rounds, each in its own process.
#[tokio::test]
async fn a_computer_that_no_list_ever_showed_leaves_a_gap() {
    let added = r#"{"deviceID":"d9","name":"Render 9"}"#;
    for (payload, is_added, subject) in [
        (r#"{"deviceID":"d9"}"#, false, "d9"),
        (r#"{"device":{"id":"d9"},"userID":"u1"}"#, false, "d9"),
        (r#"{"what":{"subject":"d9"}}"#, true, "d9"),
        (r#"{"name":"Render 9"}"#, true, "d9"),
        (r#"{"name":"Render 9"}"#, false, "unknown_computer"),
        ("{}", true, "unknown_computer"),
    ] {
        let world = read_once().await;
        world.set_now("2026-11-20T12:30:00Z");
        if is_added {
            world.team().activity.push(activity_event("teamDeviceAddedEvent", added, "2026-11-20T12:05:00Z"));
        }
        world.team().activity.push(activity_event("teamDeviceRemovedEvent", payload, "2026-11-20T12:10:00Z"));
        world.sync(&settings()).await;
        // A computer that was added after the last reading has no earlier events.
        let from = if is_added && subject == "d9" { NOON } else { LAG_BEFORE_NOON };
        let expected = [(subject.to_owned(), at(from), at("2026-11-20T12:10:00Z"))];
        assert_eq!(intervals(&world), expected, "{payload}, added: {is_added}");
        world.set_now("2026-11-20T12:40:00Z");
        world.sync(&settings()).await;
        assert_eq!(intervals(&world), expected, "repeated: {payload}");
    }
}

/// Activity shows the earlier of two removals after the later one, and names neither computer.
#[tokio::test]
async fn an_earlier_removal_that_appears_later_leaves_its_own_gap() {
    let world = read_once().await;
    world.set_now("2026-11-20T13:00:00Z");
    world.sync(&settings()).await;
    for (removed, now) in
        [("2026-11-20T13:30:00Z", "2026-11-20T13:40:00Z"), ("2026-11-20T12:50:00Z", "2026-11-20T13:50:00Z")]
    {
        world.team().activity.push(activity_event("teamDeviceRemovedEvent", "{}", removed));
        world.set_now(now);
        world.sync(&settings()).await;
    }
    let gap = |from: &str, to: &str| ("unknown_computer".to_owned(), at(from), at(to));
    let later = gap("2026-11-20T12:45:00Z", "2026-11-20T13:30:00Z");
    assert_eq!(intervals(&world), [later, gap(LAG_BEFORE_NOON, "2026-11-20T12:50:00Z")]);
}

/// The header names the computer of the person who removes another one.
#[tokio::test]
async fn a_computer_that_only_the_header_names_was_not_removed() {
    let world = read_once().await;
    world.set_now("2026-11-20T12:30:00Z");
    let added =
        activity_event("teamDeviceAddedEvent", r#"{"deviceID":"d9","name":"Render 9"}"#, "2026-11-20T12:05:00Z");
    let header = r#"{"at":"12:10","tokenInfo":{"deviceID":"d1"}}"#;
    let text = format!(r#"{{"header":{header},"teamDeviceRemovedEvent":{{"name":"Render 9"}}}}"#);
    let time = ServedTime::At(at("2026-11-20T12:10:00Z"));
    world.team().activity.extend([added, RawEvent::new(text.into(), false, None, time)]);
    world.sync(&settings()).await;
    assert_eq!(intervals(&world), [("d9".to_owned(), at(NOON), at("2026-11-20T12:10:00Z"))]);
    assert!(world.state().devices.contains("d1"));
}

#[tokio::test]
async fn a_computer_that_an_event_named_is_known() {
    let world = read_once().await;
    world.team().connections.push(connection("two", "d9", "2026-11-20T12:01:00Z"));
    world.set_now("2026-11-20T12:05:00Z");
    world.sync(&settings()).await;
    world.set_now("2026-11-20T12:30:00Z");
    world.team().connections.retain(|event| event.device != Some("d9".into()));
    world.team().activity.push(activity_event("teamDeviceRemovedEvent", r#"{"gone":["d9"]}"#, "2026-11-20T12:10:00Z"));
    world.sync(&settings()).await;
    assert_eq!(intervals(&world), [("d9".to_owned(), at("2026-11-20T11:50:00Z"), at("2026-11-20T12:10:00Z"))]);
}

/// The gap distinguishes its unread part from the part for late events.
#[tokio::test]
async fn a_gap_distinguishes_its_certain_and_its_possible_part() {
    let world = read_once().await;
    remove(&world, false);
    world.set_now("2026-11-20T12:30:00Z");
    world.sync(&settings()).await;
    let reason = &gaps(&world)[0].reason;
    assert!(reason.contains(&format!("from {} on were not read", at(NOON))), "{reason}");
    assert!(reason.contains("only if they appeared late"), "{reason}");
}

/// The backfill fails after a day. Activity of the next round shows that the computer was removed before.
#[tokio::test]
async fn the_part_that_was_confirmed_before_a_removal_is_no_gap() {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-18T10:00:00Z"));
    let second_day = at("2026-11-18T23:00:00Z").seconds()..at("2026-11-20T00:00:02Z").seconds();
    world.on_ask(move |ask, team| {
        let Ask::Page(query) = ask else { return None };
        if query.stream != Stream::Connections {
            return None;
        }
        team.now = team.now.plus(Duration::from_secs(10));
        (second_day.contains(&query.start) && second_day.contains(&query.stop)).then(unavailable)
    });
    assert!(!world.round(&settings()).await.failures.is_empty());
    world.calm();
    let confirmed = world.window(Stream::Connections, "2026-11-18T00:00:00Z").confirmed_at.unwrap();
    let removed = confirmed.plus(Duration::from_secs(2));
    for (device, seconds) in [("d8", 2), ("d9", 0)] {
        let time = removed.minus(Duration::from_secs(seconds)).to_string();
        world.team().activity.push(activity_event(
            "teamDeviceRemovedEvent",
            &format!(r#"{{"deviceID":"{device}"}}"#),
            &time,
        ));
    }
    world.set_now("2026-11-20T12:30:00Z");
    world.sync(&settings()).await;
    let begins = |device: &str| intervals(&world).into_iter().find(|(id, ..)| id == device).map(|(_, from, _)| from);
    assert_eq!(
        begins("d9"),
        Some(at("2026-11-19T00:00:00Z")),
        "the day that was confirmed before the removal is not in the gap"
    );
    assert_eq!(
        begins("d8"),
        Some(at("2026-11-18T00:00:00Z")),
        "a day that was confirmed within a second of the removal is in the gap"
    );
}

/// The first process reads, commits nothing and ends; the computer is removed while no process runs.
#[tokio::test]
async fn a_first_reading_that_is_killed_leaves_the_gap_of_a_computer_removed_since() {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d9", "2026-11-20T11:59:00Z"));
    world.on_ask(|ask, _| matches!(ask, Ask::Page(query) if query.stream == Stream::Connections).then(unavailable));
    assert!(!world.round(&settings()).await.failures.is_empty());
    world.calm();
    world.team().connections.clear();
    world.team().activity.push(activity_event(
        "teamDeviceRemovedEvent",
        r#"{"deviceID":"d9"}"#,
        "2026-11-20T12:10:00Z",
    ));
    world.set_now("2026-11-20T12:30:00Z");
    world.sync(&settings()).await;
    let expected = ("d9".to_owned(), at("2026-11-18T00:00:00Z"), at("2026-11-20T12:10:00Z"));
    assert_eq!(intervals(&world), [expected]);
}

#[tokio::test]
async fn a_removal_before_the_first_reading_is_a_finding_and_no_gap() {
    for is_activity_first in [false, true] {
        let world = World::new(NOON);
        world.team().activity.push(activity_event(
            "teamDeviceRemovedEvent",
            r#"{"deviceID":"d9"}"#,
            "2026-11-19T08:00:00Z",
        ));
        world.team().activity.push(activity_event(
            "teamDeviceRemovedEvent",
            r#"{"deviceID":"d8"}"#,
            "2026-11-17T08:00:00Z",
        ));
        if is_activity_first {
            world.sync(&Settings { streams: vec![Stream::Activity], ..settings() }).await;
            assert!(world.findings(FindingKind::RemovedBefore).is_empty(), "no connections were asked for");
        }
        world.sync(&settings()).await;
        assert!(gaps(&world).is_empty());
        let before = || -> Vec<_> {
            let found = world.findings(FindingKind::RemovedBefore).into_iter();
            found.map(|finding| (finding.subject, finding.from.unwrap(), finding.to.unwrap())).collect()
        };
        let of_d9 = ("d9".to_owned(), at("2026-11-18T00:00:00Z"), at("2026-11-19T08:00:00Z"));
        assert_eq!(before(), std::slice::from_ref(&of_d9), "activity first: {is_activity_first}");
        // The archive is extended to the past: both computers are missing from the added part.
        let since = Settings { since: Some(at("2026-11-16T00:00:00Z")), ..settings() };
        world.set_now("2026-11-20T12:30:00Z");
        world.sync(&since).await;
        let (extended, start) = (before(), at("2026-11-16T00:00:00Z"));
        assert_eq!(extended.len(), 3, "{extended:?}");
        assert!(extended.contains(&of_d9) && gaps(&world).is_empty());
        assert!(extended.contains(&("d9".to_owned(), start, at("2026-11-18T00:00:00Z"))));
        assert!(extended.contains(&("d8".to_owned(), start, at("2026-11-17T08:00:00Z"))));
    }
}

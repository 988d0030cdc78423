//! Rounds over a small team in virtual time: a gap where something was lost, none where nothing was.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use annals::archive::Finding;
use annals::model::Stream;
use annals::pipeline::Settings;
use common::team_world::{Ask, World, activity, at, connection, entry, unavailable};

const NOON: &str = "2026-11-20T12:00:00Z";
const DAY: Duration = Duration::from_secs(86_400);

fn settings() -> Settings {
    Settings { since: Some(at("2026-11-18T00:00:00Z")), ..Settings::default() }
}

fn gaps(world: &World) -> Vec<Finding> {
    world.state().gaps().cloned().collect()
}

async fn read_once() -> Arc<World> {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.sync(&settings()).await;
    assert!(gaps(&world).is_empty());
    world
}

/// Removes d1 at 12:10, as activity tells.
fn remove(world: &World, is_listed_again: bool) {
    let mut team = world.team();
    team.connections.clear();
    team.activity.push(activity("teamDeviceRemovedEvent", "d1", "2026-11-20T12:10:00Z"));
    if !is_listed_again {
        team.devices.retain(|id| *id != "d1");
    }
}

#[tokio::test]
async fn a_removal_is_told_though_the_round_that_read_of_it_broke_off() {
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
        assert_eq!(interval, ("d1", Some(at(NOON)), Some(at("2026-11-20T12:10:00Z"))));
        world.set_now("2026-11-20T12:51:00Z");
        world.sync(&settings()).await;
        assert_eq!(world.state().gaps().count(), 1);
    }
}

#[tokio::test]
async fn only_the_removal_of_a_computer_is_one() {
    let world = read_once().await;
    world.set_now("2026-11-20T12:30:00Z");
    for name in ["teamGroupDeviceRemovedEvent", "teamDeviceUserRemovedEvent"] {
        world.team().activity.push(activity(name, "d1", "2026-11-20T12:10:00Z"));
    }
    world.sync(&settings()).await;
    assert!(gaps(&world).is_empty());
}

#[tokio::test]
async fn a_list_of_computers_that_is_empty_for_once_is_no_removal() {
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

#[tokio::test]
async fn a_first_reading_that_breaks_off_has_not_fallen_behind() {
    let world = World::new(NOON);
    world.team().plan_span = Some(10 * DAY);
    let since = Settings { since: Some(at("2026-08-01T00:00:00Z")), ..Settings::default() };
    world.on_ask(|ask, _| matches!(ask, Ask::Page(query) if query.stream == Stream::Connections).then(unavailable));
    assert!(!world.round(&since).await.failures.is_empty());
    world.calm();
    world.set_now("2026-11-20T12:20:00Z");
    world.sync(&since).await;
    assert!(gaps(&world).is_empty(), "{:?}", gaps(&world));
}

#[tokio::test]
async fn a_team_that_is_quiet_for_longer_than_the_plans_span_has_not_fallen_behind() {
    let world = World::new("2026-11-20T00:30:00Z");
    world.team().plan_span = Some(Duration::from_secs(6 * 3600));
    for minutes in (0..40 * 60).step_by(50) {
        world.team().now = at("2026-11-20T00:30:00Z").plus(Duration::from_secs(minutes * 60));
        world.sync(&Settings::default()).await;
        assert!(gaps(&world).is_empty(), "{:?}", gaps(&world));
    }
}

#[tokio::test]
async fn falling_behind_is_said_once_and_by_who_reads_connections() {
    let world = read_once().await;
    world.team().plan_span = Some(2 * DAY);
    world.set_now("2026-11-25T12:00:00Z");
    let activity_alone = Settings { streams: vec![Stream::Activity], ..settings() };
    world.sync(&activity_alone).await;
    let until = Settings { until: Some(at("2026-11-20T00:00:00Z")), ..settings() };
    world.sync(&until).await;
    assert!(gaps(&world).is_empty());
    for _ in 0..2 {
        world.sync(&settings()).await;
        let gaps = gaps(&world);
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        assert_eq!((gaps[0].from, gaps[0].to), (Some(at(NOON)), Some(at("2026-11-23T12:00:00Z"))));
    }
}

/// What such a round read came too late to have been read in time: the next one must not take it for read.
#[tokio::test]
async fn falling_behind_is_said_by_the_round_that_breaks_off_too() {
    let world = read_once().await;
    world.team().plan_span = Some(2 * DAY);
    world.set_now("2026-11-25T12:00:00Z");
    let unanswered = at("2026-11-21T23:00:00Z").seconds()..at("2026-11-24T22:00:00Z").seconds();
    world.on_ask(move |ask, _| match ask {
        Ask::Page(query) if query.stream == Stream::Connections && unanswered.contains(&query.start) => {
            Some(unavailable())
        }
        _ => None,
    });
    assert!(!world.round(&settings()).await.failures.is_empty());
    world.calm();
    world.set_now("2026-11-25T12:10:00Z");
    world.sync(&settings()).await;
    world.sync(&settings()).await;
    let told: Vec<_> = gaps(&world).iter().map(|gap| (gap.from.unwrap(), gap.to.unwrap())).collect();
    let [whole, rest] = told[..] else { panic!("{told:?}") };
    assert_eq!(whole, (at(NOON), at("2026-11-23T12:00:00Z")));
    assert_eq!(rest, (at("2026-11-23T12:00:00Z"), at("2026-11-23T12:10:00Z")), "what that round left came later still");
}

#[tokio::test]
async fn billing_that_shows_less_for_once_loses_nothing() {
    let world = World::new(NOON);
    let ledger: Vec<_> = (10..26).rev().map(|n| entry(&format!("b{n}"), "2026-11-20T11:00:00Z")).collect();
    world.team().billing = ledger[6..].to_vec();
    world.sync(&settings()).await;
    for shown in [&[][..], &ledger[6..], &ledger[4..7], &ledger[2..12]] {
        world.team().billing = shown.to_vec();
        world.sync(&settings()).await;
        assert!(gaps(&world).is_empty(), "{:?}", gaps(&world));
    }
    assert_eq!(world.held(Stream::Billing).len(), 14);
}

#[tokio::test]
async fn a_computer_that_vanishes_in_the_middle_of_the_first_reading_leaves_a_gap() {
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

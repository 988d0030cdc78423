//! Rounds over a small team in virtual time: the records of windows, and that a round without news writes nothing.

use crate::common;

use std::sync::Arc;
use std::time::Duration;

use annals::api::ApiError;
use annals::archive::{FindingKind, WindowState};
use annals::model::{Instant, Retained, Retention, Stream, TeamRetention};
use annals::pipeline::{ExpirySettings, Settings};
use common::team_world::{Ask, World, activity, at, connection, entry, unavailable, untimed};

const NOON: &str = "2026-11-20T12:00:00Z";

fn settings() -> Settings {
    Settings { since: Some(at("2026-11-18T00:00:00Z")), ..Settings::default() }
}

type Scene = (&'static str, fn(&World));

fn seq(world: &World) -> u64 {
    world.state().seq.0
}

#[tokio::test]
async fn a_quiet_round_writes_nothing() {
    let scenes: [Scene; 5] = [
        ("an event of the future", |world| {
            world.team().connections.push(connection("soon", "d1", "2026-11-22T08:00:00Z"));
        }),
        ("an event without a time", |world| world.team().activity.push(untimed("oddEvent"))),
        ("the deprecated history", |world| world.team().is_old = true),
        ("a second that always changes", |world| {
            let mut number = 0;
            world.on_ask(move |ask, team| {
                if let Ask::Page(query) = ask
                    && query.stream == Stream::Activity
                    && query.stop <= at(NOON).seconds()
                {
                    number += 1;
                    let text = format!("{}Event", ["a", "b"][number % 2]);
                    team.activity.retain(|event| event.at() != Some(at("2026-11-18T06:00:00.5Z")));
                    team.activity.push(activity(&text, "", "2026-11-18T06:00:00.5Z"));
                }
                None
            });
        }),
        ("a window that is empty all at once", |world| {
            world.set_now("2026-11-19T23:59:00Z");
        }),
    ];
    for (scene, arrange) in scenes {
        let world = World::new(NOON);
        for n in 0..3 {
            world.team().connections.push(connection(&format!("c{n}"), "d1", "2026-11-20T10:00:00.123Z"));
            world.team().activity.push(activity("someEvent", &n.to_string(), "2026-11-19T10:00:00.123Z"));
        }
        arrange(&world);
        world.sync(&settings()).await;
        if world.team().now != at(NOON) {
            world.team().activity.clear();
            world.set_now(NOON);
        }
        for _ in 0..2 {
            world.sync(&settings()).await;
        }
        let before = seq(&world);
        world.sync(&settings()).await;
        assert_eq!(seq(&world), before, "{scene}: {:?}", world.findings(FindingKind::Silence));
    }
}

#[tokio::test]
async fn a_window_counts_every_event_that_it_holds() {
    let world = World::new(NOON);
    world.team().connections.push(connection("soon", "d1", "2026-11-21T08:00:00Z"));
    world.team().billing.push(entry("b1", "2026-11-20T11:00:00Z"));
    world.sync(&settings()).await;
    world.set_now("2026-11-21T09:00:00Z");
    world.team().connections.push(connection("now", "d1", "2026-11-21T08:30:00Z"));
    world.sync(&settings()).await;
    assert_eq!(world.held(Stream::Connections).len(), 2);
    assert_eq!(world.window(Stream::Connections, "2026-11-21T00:00:00Z").events, 2);
    assert_eq!(world.window(Stream::Billing, "2026-11-20T00:00:00Z").events, 1);
    assert!(world.findings(FindingKind::NoLongerServed).is_empty(), "an entry that was seen is not gone");
}

#[tokio::test]
async fn a_vanished_event_is_counted_once_over_all_rescans() {
    let world = World::new("2026-11-20T00:20:00Z");
    for n in 0..4 {
        world.team().connections.push(connection(&format!("c{n}"), "d1", &format!("2026-11-19T{:02}:00:00Z", 5 * n)));
    }
    world.sync(&settings()).await;
    world.team().connections.truncate(2);
    for now in ["2026-11-20T01:30:00Z", "2026-11-21T00:30:00Z", "2026-11-23T00:30:00Z"] {
        world.set_now(now);
        world.sync(&settings()).await;
    }
    let gone: u64 = world.findings(FindingKind::NoLongerServed).iter().map(|finding| finding.count).sum();
    assert_eq!((gone, world.held(Stream::Connections).len()), (2, 4));
}

/// On a day of 60,000 events, two hours of padding hold more events than a span should bring.
#[tokio::test]
async fn a_busy_day_is_re_scanned_with_few_requests() {
    let world = World::new("2026-11-20T00:20:00Z");
    let start = at("2026-11-19T00:00:00Z");
    for n in 0..60_000 {
        let time = start.plus(Duration::from_millis(n * 1_440)).to_string();
        world.team().connections.push(connection(&format!("c{n}"), "d1", &time));
    }
    let settings = Settings { since: Some(start), ..Settings::default() };
    world.sync(&settings).await;
    for (now, rescans) in [("2026-11-20T01:30:00Z", 1), ("2026-11-21T00:30:00Z", 2), ("2026-11-23T00:30:00Z", 3)] {
        world.set_now(now);
        let before = world.window(Stream::Connections, "2026-11-19T00:00:00Z");
        let mut asked = 0;
        world.on_ask(move |_, _| {
            asked += 1;
            assert!(asked < 1_000, "a re-scan without an end");
            None
        });
        world.sync(&settings).await;
        world.calm();
        let after = world.window(Stream::Connections, "2026-11-19T00:00:00Z");
        let requests = after.requests - before.requests;
        assert!((60..400).contains(&requests), "{requests} requests for the re-scan at {now}");
        assert_eq!((after.rescans, after.late), (rescans, 0));
    }
    assert_eq!(world.held(Stream::Connections).len(), 60_000);
}

#[tokio::test]
async fn an_absurd_date_settles_nothing_and_begins_no_archive() {
    for (asked, name) in [(1, "the team"), (2, "the computers"), (4, "a page")] {
        for wild in ["2099-01-01T00:00:00Z", "2026-11-24T00:00:00Z", "2001-01-01T00:00:00Z"] {
            let world = World::new(NOON);
            world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
            let (mut number, wild) = (0, at(wild));
            world.on_ask(move |_, team| {
                team.wild_date = (number == asked).then_some(wild);
                number += 1;
                None
            });
            world.sync(&Settings::default()).await;
            world.calm();
            let record = world.state().streams[&Stream::Connections].clone();
            assert_eq!(record.begins, Some(at("2026-10-21T00:00:00Z")), "{wild} from {name}");
            world.set_now("2026-11-20T12:05:00Z");
            world.team().connections.push(connection("two", "d1", "2026-11-20T12:01:00Z"));
            world.sync(&Settings::default()).await;
            assert_eq!(world.held(Stream::Connections).len(), 2, "{wild} from {name}");
            let today = world.window(Stream::Connections, "2026-11-20T00:00:00Z");
            assert_eq!(today.state, WindowState::Provisional, "{wild} from {name}");
        }
    }
}

#[tokio::test]
async fn since_in_the_future_does_not_stop_the_reading_for_good() {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    let future = Settings { since: Some(at("2031-01-01T00:00:00Z")), ..Settings::default() };
    world.sync(&future).await;
    world.sync(&Settings::default()).await;
    assert_eq!(world.held(Stream::Connections).len(), 1);
}

#[tokio::test]
async fn a_window_confirmed_in_parts_is_read_once_more_before_it_is_final() {
    let world = World::new("2026-11-20T00:20:00Z");
    // The day is so dense that the program reads it in several parts; the service fails before the last part.
    for n in 0..30_000_i64 {
        let time = at("2026-11-19T00:00:00Z").plus(Duration::from_secs(n.unsigned_abs() * 2));
        world.team().connections.push(connection(&format!("c{n}"), "d1", &time.to_string()));
    }
    let later = at("2026-11-19T01:00:00Z").seconds()..at("2026-11-19T23:00:00Z").seconds();
    world.on_ask(move |ask, _| match ask {
        Ask::Page(query) if query.stream == Stream::Connections && later.contains(&query.start) => Some(unavailable()),
        _ => None,
    });
    let since = Settings { since: Some(at("2026-11-19T00:00:00Z")), ..Settings::default() };
    assert!(!world.round(&since).await.failures.is_empty());
    let half = world.window(Stream::Connections, "2026-11-19T00:00:00Z");
    assert!(half.state == WindowState::Provisional && !half.confirmed.is_empty(), "{half:?}");
    world.calm();
    world.team().connections.push(connection("late", "d1", "2026-11-19T00:00:01Z"));
    world.set_now("2026-11-24T00:00:00Z");
    world.sync(&since).await;
    world.sync(&since).await;
    assert!(world.held(Stream::Connections).iter().any(|text| text.contains("late")));
    world.sync(&since).await;
    assert_eq!(world.window(Stream::Connections, "2026-11-19T00:00:00Z").state, WindowState::Sealed);
}

#[tokio::test]
async fn an_unstable_range_closes_its_gap_when_it_is_read_in_parts() {
    let world = World::new("2026-11-20T12:00:00Z");
    let moving = |world: &Arc<World>, from: Instant| {
        let mut number = 0;
        world.on_ask(move |ask, team| {
            if let Ask::Page(query) = ask
                && query.stream == Stream::Connections
                && query.start >= from.seconds()
                && query.stop <= at("2026-11-20T00:00:02Z").seconds()
            {
                number += 1;
                team.connections.retain(|event| !event.id.as_ref().unwrap().as_str().starts_with("moving"));
                for n in 0..96_u64 {
                    let time = at("2026-11-19T00:00:00Z").plus(Duration::from_secs(n * 900));
                    team.connections.push(connection(&format!("moving-{n}-{number}"), "d1", &time.to_string()));
                }
            }
            None
        });
    };
    moving(&world, at("2026-11-18T23:00:00Z"));
    let since = Settings { since: Some(at("2026-11-19T00:00:00Z")), ..Settings::default() };
    let first = world.sync(&since).await;
    assert!(first.committed.gaps > 0);
    world.calm();
    world.sync(&since).await;
    assert_eq!(world.state().gaps().count(), 0);
    let window = world.window(Stream::Connections, "2026-11-19T00:00:00Z");
    assert!(window.state != WindowState::Provisional && window.unstable.is_empty(), "{window:?}");
}

#[tokio::test]
async fn one_missing_history_does_not_switch_to_the_deprecated_history() {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.sync(&settings()).await;
    world.team().is_old = true;
    let round = world.round(&settings()).await;
    assert!(matches!(&round.failures[..], [(Some(Stream::Connections), error)] if error.to_string().contains("404")));
    assert!(world.findings(FindingKind::DeprecatedHistory).is_empty());
    // If the history never existed, the archive begins once.
    let old = World::new(NOON);
    old.team().is_old = true;
    old.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    old.sync(&settings()).await;
    let begins = old.findings(FindingKind::ArchiveBegins).into_iter();
    assert_eq!(begins.filter(|finding| finding.stream == Some(Stream::Connections)).count(), 1);
    assert_eq!(old.state().streams[&Stream::Connections].read_points.len(), 2);
}

fn missing() -> ApiError {
    ApiError::NotFound { what: "a history".into(), status: 404 }
}

#[tokio::test]
async fn a_first_404_of_the_team_history_is_asked_again_and_no_computers_confirm_nothing() {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-18T10:00:00Z"));
    let mut failures = 1;
    world.on_ask(move |ask, _| match ask {
        Ask::Page(query) if query.stream == Stream::Connections && failures > 0 => {
            failures -= 1;
            Some(missing())
        }
        _ => None,
    });
    world.sync(&settings()).await;
    assert!(world.findings(FindingKind::DeprecatedHistory).is_empty());
    assert_eq!(world.held(Stream::Connections).len(), 1);
    let old = World::new(NOON);
    old.team().connections.push(connection("one", "d1", "2026-11-18T10:00:00Z"));
    old.team().is_old = true;
    old.team().devices.clear();
    assert!(old.sync(&settings()).await.deferred.unread.contains(&Stream::Connections));
    let is_connections = |(stream, _): &&(Stream, Instant)| *stream == Stream::Connections;
    assert_eq!(old.state().windows.keys().filter(is_connections).count(), 0);
    old.team().devices = vec!["d1"];
    old.sync(&settings()).await;
    assert_eq!(old.held(Stream::Connections).len(), 1);
}

#[tokio::test]
async fn the_program_stops_reading_a_service_that_repeats_one_page() {
    let world = World::new(NOON);
    let mut requests = 0;
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.on_ask(move |ask, team| {
        requests += 1;
        assert!(requests < 20_000, "an endless reading");
        if let Ask::Page(query) = ask
            && query.stream == Stream::Connections
            && query.offset > 0
        {
            // Add another event at the same position, so every offset shows one event.
            let twin = team.connections[0].clone();
            team.connections.push(twin);
        }
        None::<ApiError>
    });
    world.sync(&settings()).await;
    assert_eq!(world.held(Stream::Connections).len(), 1);
}

#[tokio::test]
async fn a_round_with_news_is_one_line() {
    let world = World::new(NOON);
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.sync(&settings()).await;
    let before = seq(&world);
    world.set_now("2026-11-20T12:05:00Z");
    world.team().connections.push(connection("two", "d1", "2026-11-20T12:01:00Z"));
    world.sync(&settings()).await;
    assert_eq!(seq(&world), before + 1);
    assert_eq!(world.state().streams[&Stream::Connections].read_points.len(), 3);
}

/// Rounds that expire connections after this time.
fn expiring(class: &str) -> Settings {
    let all = Retention([(Retained::Connections, class.parse().unwrap())].into());
    let classes = TeamRetention { all, ..TeamRetention::default() };
    let retention = ExpirySettings::of(classes, "* * * * *".parse().unwrap());
    Settings { since: Some(at("2026-09-01T00:00:00Z")), retention, ..Settings::default() }
}

#[tokio::test]
async fn a_machine_clock_in_the_future_expires_nothing_early() {
    let world = World::new(NOON);
    world.team().connections.push(connection("c1", "d1", "2026-09-10T10:00:00Z"));
    world.sync(&Settings { since: Some(at("2026-09-01T00:00:00Z")), ..Settings::default() }).await;
    assert!(world.state().sealed_months.contains(&(Stream::Connections, at("2026-09-01T00:00:00Z"))));
    world.team().machine_ahead = Duration::from_secs(12 * 366 * 86_400);
    world.sync(&expiring("1y")).await;
    assert!(world.state().expired.is_empty(), "{:?}", world.state().expired);
    assert_eq!(world.held(Stream::Connections).len(), 1);
    // By the service's clock, this month is due.
    world.sync(&expiring("1mo")).await;
    let times: Vec<Instant> = world.state().expired.values().map(|(_, record)| record.at).collect();
    assert!(!times.is_empty() && times.iter().all(|time| *time == at(NOON)), "{times:?}");
    assert_eq!(world.held(Stream::Connections).len(), 0);
}

//! Rounds over a small team in virtual time: what falls behind the plan's span leaves a gap.

use std::time::Duration;

use annals::archive::FindingKind;
use annals::model::{Stream, TeamId};
use annals::pipeline::{RoundError, Settings, read_team};

use crate::common::team_world::{Ask, World, at, connection, unavailable};
use crate::gaps::{LAG_BEFORE_NOON, NOON, gaps, intervals, read_once, settings};

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn a_failed_first_reading_has_not_fallen_behind() {
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

/// The service shows no event of the first window that is older than the span.
#[tokio::test]
async fn the_archive_begins_where_the_plans_span_began_inside_the_first_window() {
    for (since, begins) in
        [("2026-08-01T00:00:00Z", "2026-11-18T12:00:00Z"), ("2026-11-19T12:00:00Z", "2026-11-19T00:00:00Z")]
    {
        let world = World::new(NOON);
        world.team().plan_span = Some(2 * DAY);
        world.sync(&Settings { since: Some(at(since)), ..Settings::default() }).await;
        let found = world.findings(FindingKind::ArchiveBegins).into_iter();
        let of_connections: Vec<_> = found.filter(|found| found.stream == Some(Stream::Connections)).collect();
        assert_eq!(of_connections.iter().map(|found| found.from).collect::<Vec<_>>(), [Some(at(begins))], "{since}");
        assert!(gaps(&world).is_empty(), "{:?}", gaps(&world));
    }
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
async fn the_reader_of_connections_reports_falling_behind_once() {
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
        assert_eq!((gaps[0].from, gaps[0].to), (Some(at(LAG_BEFORE_NOON)), Some(at("2026-11-23T12:00:00Z"))));
    }
}

/// A failed round read these events too late: the next round must not count them as read in time.
#[tokio::test]
async fn a_failed_round_reports_falling_behind_too() {
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
    let ranges: Vec<_> = gaps(&world).iter().map(|gap| (gap.from.unwrap(), gap.to.unwrap())).collect();
    let [whole, rest] = ranges[..] else { panic!("{ranges:?}") };
    assert_eq!(whole, (at(LAG_BEFORE_NOON), at("2026-11-23T12:00:00Z")));
    assert_eq!(rest, (at("2026-11-23T12:00:00Z"), at("2026-11-23T12:10:00Z")), "the rest of that round came later");
}

/// The service answers this many minutes after the round began: meanwhile the oldest events leave the plan's span.
#[tokio::test]
async fn what_leaves_the_plans_span_before_its_reading_lies_in_a_gap_too() {
    for (days, now, edge, read) in [
        (2, "2026-11-25T12:00:00Z", "2026-11-23T12:00:00Z", "2026-11-23T12:10:00Z"),
        // The edge is in a window whose lag has not passed.
        (1, "2026-11-26T00:04:00Z", "2026-11-25T00:04:00Z", "2026-11-25T00:14:00Z"),
    ] {
        let world = read_once().await;
        world.team().plan_span = Some(days * DAY);
        world.set_now(now);
        let mut is_late = false;
        world.on_ask(move |ask, team| {
            let is_first = !is_late && matches!(ask, Ask::Page(query) if query.stream == Stream::Connections);
            is_late |= is_first;
            team.now = team.now.plus(Duration::from_secs(if is_first { 600 } else { 0 }));
            None
        });
        for _ in 0..2 {
            world.sync(&settings()).await;
            let gap = |from, to| ("plan_span".to_owned(), at(from), at(to));
            assert_eq!(intervals(&world), [gap(LAG_BEFORE_NOON, edge), gap(edge, read)], "{now}");
        }
    }
}

/// A first reading finds the same, and the archive begins there.
#[tokio::test]
async fn what_leaves_the_plans_span_before_a_first_reading_is_no_gap() {
    let world = World::new(NOON);
    world.team().plan_span = Some(2 * DAY);
    world.on_ask(|ask, team| {
        let is_connections = matches!(ask, Ask::Page(query) if query.stream == Stream::Connections);
        team.now = team.now.plus(Duration::from_secs(if is_connections { 60 } else { 0 }));
        None
    });
    world.sync(&Settings::default()).await;
    assert!(gaps(&world).is_empty(), "{:?}", gaps(&world));
}

fn fail_connections_before(world: &World, end: &str) {
    let end = at(end).seconds();
    world.on_ask(move |ask, _| match ask {
        Ask::Page(query) if query.stream == Stream::Connections && query.start < end => Some(unavailable()),
        _ => None,
    });
}

#[tokio::test]
async fn an_interrupted_extension_of_a_backfill_reports_falling_behind() {
    let world = read_once().await;
    world.team().plan_span = Some(30 * DAY);
    world.set_now("2026-11-20T12:10:00Z");
    fail_connections_before(&world, "2026-11-17T00:00:00Z");
    let extended = Settings { since: Some(at("2026-11-01T00:00:00Z")), ..Settings::default() };
    assert!(!world.round(&extended).await.failures.is_empty());
    world.calm();
    world.set_now("2026-12-10T12:00:00Z");
    world.sync(&Settings::default()).await;
    let gap = ("plan_span".to_owned(), at("2026-11-01T00:00:00Z"), at("2026-11-10T12:00:00Z"));
    assert_eq!(intervals(&world), [gap]);
}

#[tokio::test]
async fn a_plan_that_shrinks_during_a_first_backfill_reports_falling_behind() {
    let world = World::new(NOON);
    world.team().plan_span = Some(90 * DAY);
    fail_connections_before(&world, "2027-01-01T00:00:00Z");
    assert!(!world.round(&Settings::default()).await.failures.is_empty());
    world.calm();
    world.team().plan_span = Some(30 * DAY);
    world.set_now("2026-11-21T12:00:00Z");
    world.sync(&Settings::default()).await;
    let gap = ("plan_span".to_owned(), at("2026-08-22T12:00:00Z"), at("2026-10-22T12:00:00Z"));
    assert_eq!(intervals(&world), [gap]);
}

#[tokio::test]
async fn a_plan_that_is_no_longer_shown_still_reports_falling_behind() {
    let world = World::new(NOON);
    world.team().plan_span = Some(2 * DAY);
    world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
    world.sync(&settings()).await;
    world.team().plan_span = None;
    world.set_now("2026-11-25T12:00:00Z");
    world.sync(&settings()).await;
    let gap = ("plan_span".to_owned(), at(LAG_BEFORE_NOON), at("2026-11-23T12:00:00Z"));
    assert_eq!(intervals(&world), [gap]);
}

/// A token of a user who is no admin does not see the span.
#[tokio::test]
async fn a_plan_that_was_never_shown_reports_falling_behind_by_the_configured_span() {
    for (configured, is_noticed) in [(None, false), (Some(2 * DAY), true)] {
        let settings = Settings { plan_span: configured, ..settings() };
        let world = World::new(NOON);
        world.team().connections.push(connection("one", "d1", "2026-11-20T10:00:00Z"));
        assert_eq!(world.sync(&settings).await.plan_span, configured);
        world.set_now("2026-11-25T12:00:00Z");
        world.sync(&settings).await;
        let gap = ("plan_span".to_owned(), at(LAG_BEFORE_NOON), at("2026-11-23T12:00:00Z"));
        assert_eq!(intervals(&world), if is_noticed { vec![gap] } else { Vec::new() }, "{configured:?}");
    }
}

/// A second changes at each read. It is read whole later, when the service may no longer show its events.
#[tokio::test]
async fn a_gap_of_an_unstable_second_stays_once_the_plan_hides_it() {
    for (span, is_closed) in [(None, true), (Some(30 * DAY), true), (Some(2 * DAY), false)] {
        let world = World::new(NOON);
        let mut number = 0;
        world.on_ask(move |ask, team| {
            if matches!(ask, Ask::Page(query) if query.stream == Stream::Connections) {
                number += 1;
                team.connections = vec![connection(&format!("n{number}"), "d1", "2026-11-18T10:00:00Z")];
            }
            None
        });
        world.team().plan_span = span;
        world.round(&settings()).await;
        world.calm();
        assert!(intervals(&world).iter().any(|(subject, ..)| subject == "unstable"), "{:?}", intervals(&world));
        world.set_now("2026-11-25T12:00:00Z");
        world.sync(&settings()).await;
        assert_eq!(world.findings(FindingKind::GapClosed).len(), usize::from(is_closed), "{span:?}");
    }
}

#[tokio::test]
async fn a_rescan_of_windows_that_the_plan_hides_is_no_silence() {
    let world = World::new(NOON);
    for day in 1..20 {
        for second in 10..60 {
            let time = format!("2026-11-{day:02}T10:00:{second}Z");
            world.team().connections.push(connection(&format!("n{day}-{second}"), "d1", &time));
        }
    }
    let settings = Settings { since: Some(at("2026-11-01T00:00:00Z")), ..Settings::default() };
    world.sync(&settings).await;
    world.team().connections.clear();
    world.set_now("2026-11-20T12:30:00Z");
    world.sync(&Settings { rescan_now: true, ..settings }).await;
    assert!(!world.findings(FindingKind::NoLongerServed).is_empty());
    assert!(world.findings(FindingKind::Silence).is_empty(), "{:?}", world.findings(FindingKind::Silence));
}

/// The events of connections would leave the plan's span if the streams waited for the team's view.
#[tokio::test]
async fn a_failing_view_of_a_team_does_not_stop_its_streams() {
    let world = World::new(NOON);
    world.team().plan_span = Some(2 * DAY);
    world.sync(&settings()).await;
    world.on_ask(|ask, _| matches!(ask, Ask::Team).then(unavailable));
    // This machine's clock is wrong: only the service's clock may tell which windows are final.
    world.team().machine_ahead = 30 * DAY;
    for now in ["2026-11-21T12:00:00Z", "2026-11-24T12:00:00Z"] {
        world.team().connections.push(connection(now, "d1", now));
        world.set_now(now);
        let failures = world.round(&settings()).await.failures;
        assert!(matches!(&failures[..], [(None, RoundError::Api(error))] if *error == unavailable()), "{failures:?}");
    }
    assert_eq!(world.held(Stream::Connections).len(), 2);
    let days: Vec<_> = world.state().windows.keys().map(|(_, start)| *start).collect();
    assert_eq!(days.iter().max(), Some(&at("2026-11-24T00:00:00Z")), "{days:?}");
    let behind = ("plan_span".to_owned(), at("2026-11-21T11:45:00Z"), at("2026-11-22T12:00:00Z"));
    assert_eq!(intervals(&world), [behind], "the span of the first round still holds");
}

/// The view fails after a minute of retries. A run that also reads the streams would delay other teams.
#[tokio::test]
async fn a_run_that_waited_for_a_failing_view_leaves_the_streams_to_the_next_run() {
    let world = read_once().await;
    world.set_now("2026-11-20T13:00:00Z");
    world.team().connections.push(connection("two", "d1", "2026-11-20T12:30:00Z"));
    world.on_ask(|ask, team| {
        let is_view = matches!(ask, Ask::Team);
        team.now = team.now.plus(Duration::from_secs(if is_view { 60 } else { 0 }));
        is_view.then(unavailable)
    });
    let team = world.open(&settings(), Duration::from_secs(10)).await;
    for (failures, events) in [(1, 1), (0, 2)] {
        let round = read_team(team.clone()).await;
        assert_eq!((round.failures.len(), world.held(Stream::Connections).len()), (failures, events));
    }
}

/// Without an earlier round nobody knows the plan's span. Without the team in the list, its token may be wrong.
#[tokio::test]
async fn a_failing_view_stops_a_first_round_and_a_team_that_is_not_listed() {
    let world = World::new(NOON);
    world.on_ask(|ask, _| matches!(ask, Ask::Team).then(unavailable));
    assert_eq!(world.round(&settings()).await.failures.len(), 1);
    assert!(world.state().streams.is_empty());
    let world = read_once().await;
    world.on_ask(|ask, _| matches!(ask, Ask::Team | Ask::Teams).then(unavailable));
    world.set_now("2026-11-20T13:00:00Z");
    world.team().connections.push(connection("two", "d1", "2026-11-20T12:30:00Z"));
    let of_the_team = Settings { teams: vec![TeamId::from("t")], ..settings() };
    assert_eq!(world.round(&of_the_team).await.failures.len(), 1);
    assert_eq!(world.held(Stream::Connections).len(), 1);
}

//! The daemon in virtual time: it reads many teams on time, and no team delays another.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use annals::alert::{Since, occurrences};
use annals::archive::Archive;
use annals::config::{Config, Cron, Rule, Schedule};
use annals::daemon::{DaemonCommand, Live, Task};
use annals::model::{Instant, Stream, TeamId};
use annals::store::MemoryStore;

use super::fleet::{FleetWorld, Manner};
use super::program::resident_kib;

pub const START: &str = "2026-11-20T08:00:00Z";
const MINUTE: Duration = Duration::from_secs(60);
/// The warm-up, with all backfills and their commits.
const WARM_UP: Duration = Duration::from_secs(300);

pub fn schedule() -> Schedule {
    let cron = |text: &str| text.parse::<Cron>().unwrap();
    Schedule {
        connections: cron("* * * * *"),
        activity: cron("*/5 * * * *"),
        billing: cron("*/15 * * * *"),
        inventory: cron("0 3 * * *"),
        verify: cron("0 4 * * SUN"),
        reports: cron("20 * * * *"),
        retention: cron("40 3 * * *"),
    }
}

/// The longest time between two readings of a team's stream after the warm-up, and the number of readings.
fn longest_pause(world: &FleetWorld, team: &TeamId, stream: Stream, span: Duration) -> (Duration, usize) {
    let begin = START.parse::<Instant>().unwrap();
    let (from, to) = (begin.plus(WARM_UP), begin.plus(span));
    let scans = world.scans(team, stream);
    let moments: Vec<_> = [from].into_iter().chain(scans.into_iter().filter(|at| *at > from)).chain([to]).collect();
    let pause = moments.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap();
    (pause, moments.len() - 2)
}

#[test]
fn a_thousand_teams_are_read_on_time_within_the_limit_and_in_bounded_memory() {
    let before = resident_kib(std::process::id());
    let world = Arc::new(FleetWorld::new(START, 1_000, 80.0));
    let span = MINUTE * 40;
    let live = world.run(&schedule(), span);
    let mut counts = Vec::new();
    for team in world.teams() {
        for (stream, every) in [(Stream::Connections, 60), (Stream::Activity, 300), (Stream::Billing, 900)] {
            let (pause, scans) = longest_pause(&world, team, stream, span);
            let allowed = Duration::from_secs(every + every / 4);
            assert!(pause <= allowed, "{team} {stream}: {pause:?} without a poll");
            if stream == Stream::Connections {
                counts.push(scans);
            }
        }
    }
    let (fewest, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    assert!(most - fewest <= 2, "between {fewest} and {most} scans");
    assert!(world.requests_in_a_second() <= 81, "{} requests in a second", world.requests_in_a_second());
    assert!(world.longest_wait() < Duration::from_secs(2), "requests wait {:?} for their turn", world.longest_wait());
    assert_eq!(live.open_size().1, 1_000);
    let shown = live.snapshot();
    let events: u64 = shown.teams.values().flat_map(|team| team.tasks.values()).map(|task| task.counts.rows).sum();
    // One event for each hour of the day so far.
    assert!((8_000..9_000).contains(&events), "{events} events");
    // The archive is in memory here and counts too.
    let grown = resident_kib(std::process::id()).saturating_sub(before);
    assert!(grown < 400 * 1024, "{} KiB a team", grown / 1_000);
}

#[test]
fn with_a_low_rate_limit_no_team_starves() {
    // A thousand teams need about forty requests a second.
    let world = Arc::new(FleetWorld::new(START, 300, 6.0));
    let span = MINUTE * 40;
    world.run(&schedule(), span);
    let scans: Vec<usize> =
        world.teams().iter().map(|team| longest_pause(&world, team, Stream::Connections, span).1).collect();
    let (fewest, most) = (scans.iter().min().unwrap(), scans.iter().max().unwrap());
    assert!(*fewest >= 8 && *most <= fewest * 2, "between {fewest} and {most} scans");
}

#[test]
fn refused_or_hanging_teams_delay_no_other_team() {
    let mut world = FleetWorld::new(START, 120, 200.0);
    world.behave(0..20, Manner::Refusing);
    world.behave(20..60, Manner::Hanging);
    let world = Arc::new(world);
    let span = MINUTE * 30;
    let live = world.run(&schedule(), span);
    for team in &world.teams()[60..] {
        let (pause, _) = longest_pause(&world, team, Stream::Connections, span);
        assert!(pause <= MINUTE + MINUTE / 4, "{team}: {pause:?} without a poll");
    }
    let shown = live.snapshot();
    for (n, team) in world.teams().iter().enumerate() {
        let failing = shown.teams[team].tasks.values().filter(|task| task.error.is_some()).count();
        assert_eq!(failing > 0, n < 60, "{team}: the failure is visible, and nothing else fails");
    }
    let late = live.late(START.parse::<Instant>().unwrap().plus(span)).unwrap();
    assert!(late.iter().all(|late| world.teams()[..60].contains(&late.team)));
    assert!(late.len() >= 60);
}

#[test]
fn inventory_requests_keep_to_their_share_and_delay_no_team() {
    let mut world = FleetWorld::new(START, 150, 200.0);
    world.people = 60;
    let world = Arc::new(world);
    let span = MINUTE * 60;
    let live = world.run(&schedule(), span);
    for team in world.teams() {
        let (pause, _) = longest_pause(&world, team, Stream::Connections, span);
        assert!(pause <= MINUTE + MINUTE / 2, "{team}: {pause:?} without a poll");
    }
    let shown = live.snapshot();
    for (team, live) in &shown.teams {
        let inventory = &live.tasks[&Task::Inventory];
        let is_done = inventory.done_at.is_some() && !inventory.job.is_unfinished;
        assert!(is_done, "every team is scanned nevertheless: {team} {:?} {:?}", inventory.error, inventory.job);
        // 9,300 requests; at two a second for each of four parallel teams they would take 19 minutes.
        let took = inventory.done_at.unwrap().since(START.parse::<Instant>().unwrap());
        assert!(took < MINUTE * 8, "{team} was looked at after {took:?}");
    }
}

#[test]
fn a_long_outage_causes_a_warning_before_a_loss() {
    let config = Config::of_text(Path::new("annals.toml"), "").unwrap().alerts;
    let begin: Instant = START.parse().unwrap();
    let span = MINUTE * 240;
    let firing = |minutes: u32| {
        let mut world = FleetWorld::new(START, 2, 50.0);
        world.down_from = Some(MINUTE * 30);
        let first = world.teams()[0].clone();
        world.plan_spans.get_mut().unwrap().insert(first, span);
        let world = Arc::new(world);
        let live = world.run(&schedule(), MINUTE * minutes);
        let now = begin.plus(MINUTE * minutes);
        let late = live.late(now).unwrap();
        let evaluation = occurrences(&live.snapshot(), Some(&late), &config, Since { started: begin, now });
        let of = |rule: Rule| {
            let firing = evaluation.firing.iter().filter(|firing| firing.rule == rule);
            firing.map(|firing| (firing.team.clone().unwrap(), firing.stream.clone().unwrap())).collect::<Vec<_>>()
        };
        (of(Rule::TimeLeft), of(Rule::Stale))
    };
    assert_eq!(firing(29), (vec![], vec![]), "all is well");
    let (time_left, stale) = firing(60);
    assert_eq!((time_left.len(), stale.len()), (0, 4), "connections and activity of both were not read: {stale:?}");
    let (time_left, _) = firing(30 + 130);
    let short: Vec<(&str, &str)> = time_left.iter().map(|(team, stream)| (team.as_str(), stream.as_str())).collect();
    assert_eq!(short, [("team-0000", "connections")], "less than half of the span is left");
}

#[test]
fn a_clock_that_was_ten_years_ahead_delays_no_new_team_and_no_check() {
    let mut world = FleetWorld::new(START, 2, 50.0);
    (world.clock_ahead, world.joins) = (MINUTE * 4..MINUTE * 8, MINUTE * 12);
    let world = Arc::new(world);
    let schedule = Schedule { verify: "*/6 * * * *".parse().unwrap(), ..schedule() };
    let live = world.run(&schedule, MINUTE * 30);
    let after = |span: Duration| START.parse::<Instant>().unwrap().plus(span);
    let first = world.scans(&world.teams()[1], Stream::Connections).first().copied();
    assert!(first.is_some_and(|at| (after(MINUTE * 12)..after(MINUTE * 18)).contains(&at)), "first read at {first:?}");
    let checked = live.snapshot().verified.unwrap().at;
    assert!((after(MINUTE * 23)..after(MINUTE * 30)).contains(&checked), "last checked at {checked}");
}

/// Ages follow the service's clock.
#[test]
fn a_clock_that_is_ten_years_ahead_changes_no_shown_age() {
    let mut world = FleetWorld::new(START, 1, 50.0);
    world.clock_ahead = MINUTE * 10..MINUTE * 60;
    let live = Arc::new(world).run(&schedule(), MINUTE * 30);
    let shown = live.snapshot();
    let status = shown.teams.values().next().and_then(|team| team.status.as_ref()).unwrap();
    let connections = status.streams.iter().find(|stream| stream.stream == Stream::Connections).unwrap();
    let (lag, left) = (connections.lag_seconds.unwrap(), connections.seconds_to_loss.unwrap());
    assert!(lag <= 1_000 && (89 * 86_400..=90 * 86_400).contains(&left), "lag {lag}, time left {left}");
}

#[test]
fn midnight_and_a_quiet_day_cause_no_fault() {
    let world = Arc::new(FleetWorld::new("2026-11-20T22:30:00Z", 5, 50.0));
    let live = world.run(&schedule(), Duration::from_secs(4 * 86_400));
    let shown = live.snapshot();
    for (team, live) in &shown.teams {
        let status = live.status.as_ref().unwrap();
        for stream in &status.streams {
            assert_eq!((stream.gaps, stream.late), (0, 0), "{team} {}", stream.stream);
            assert!(stream.lag_seconds.unwrap() <= 1_000, "{team} {}: {:?}", stream.stream, stream.lag_seconds);
            if stream.stream != Stream::Billing {
                assert!(stream.sealed_windows >= 1 && stream.open_windows <= 2, "{team} {stream:?}");
            }
        }
        // Each hour brings one event, and the read points of quiet streams add little.
        assert!(status.ledger_seq < 4 * 24 * 4, "{team}: {} lines", status.ledger_seq);
        assert_eq!(live.tasks.values().filter(|task| task.error.is_some()).count(), 0);
    }
}

/// Runs a daemon that follows the service's list of teams. After five seconds, a reload names the first team.
fn name_the_first_team(world: FleetWorld) -> Arc<Live> {
    let world = Arc::new(world);
    let archive = Arc::new(Archive::open_or_create(Arc::new(MemoryStore::new()), || "test".to_owned()).unwrap());
    let named = world.edges(archive.clone(), vec![world.teams()[0].clone()]);
    let reload = DaemonCommand::Reload(Box::new((named, schedule())));
    let commands = vec![(Duration::from_secs(5), reload), (MINUTE, DaemonCommand::Stop)];
    world.run_with_commands(archive, &schedule(), commands)
}

#[test]
fn a_list_of_teams_that_arrives_after_a_reload_to_named_teams_adds_no_team() {
    let mut world = FleetWorld::new(START, 3, 50.0);
    world.listing_takes = Duration::from_secs(10);
    let shown = name_the_first_team(world).snapshot();
    let teams: Vec<&str> = shown.teams.keys().map(TeamId::as_str).collect();
    assert_eq!(teams, ["team-0000"]);
}

#[test]
fn a_failed_list_of_teams_does_not_count_after_a_reload_to_named_teams() {
    let mut world = FleetWorld::new(START, 3, 50.0);
    world.listing_fails = true;
    let live = name_the_first_team(world);
    assert_eq!(live.listing_error(), None);
    assert_eq!(live.snapshot().teams.len(), 1);
}

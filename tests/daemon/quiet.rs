//! The requests of a quiet team, and the gap of a computer that is removed while the daemon rarely lists computers.

use std::sync::Arc;
use std::time::Duration;

use annals::archive::Finding;
use annals::model::Instant;

use super::fleet::{FleetWorld, Removed};
use super::virtual_time::{START, schedule};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// The requests with the default schedules: in an hour by operation, and in a day with its midnight.
#[test]
fn a_quiet_team_costs_less_than_two_requests_a_minute() {
    for (event_every, connections) in [(HOUR, 65), (HOUR * 10_000, 64)] {
        let mut world = FleetWorld::new(START, 1, 50.0);
        world.event_every = event_every;
        let world = Arc::new(world);
        world.run(&schedule(), HOUR * 30);
        let hour = world.asked(HOUR * 3..HOUR * 4);
        let expected =
            [("activity", 16), ("billing", 4), ("connections", connections), ("the computers", 1), ("the team", 1)];
        assert_eq!(hour, expected.map(|(what, count)| (what.to_owned(), count)).into());
        let day: usize = world.asked(HOUR * 5..HOUR * 29).values().sum();
        assert!((2_000..=2 * 24 * 60).contains(&day), "{day} requests in a day");
    }
}

/// The gap of a computer's removal, after the daemon has read for hours.
fn gap_of_removal(removed: Removed) -> (Arc<FleetWorld>, Finding) {
    let mut world = FleetWorld::new(START, 1, 50.0);
    world.removed = Some(removed);
    let world = Arc::new(world);
    let live = world.run(&schedule(), HOUR * 6);
    let shown = live.snapshot();
    let gaps: Vec<Finding> = shown.teams[&world.teams()[0]].gaps.iter().map(|(_, gap)| gap.clone()).collect();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    (world, gaps[0].clone())
}

#[test]
fn a_removal_in_activity_leaves_a_gap_as_short_as_with_a_list_every_minute() {
    let start: Instant = START.parse().unwrap();
    for minutes in [200, 219, 230] {
        let at = MINUTE * minutes + Duration::from_millis(500);
        let (_, gap) = gap_of_removal(Removed { at, is_shown: true });
        let (from, to) = (gap.from.unwrap(), gap.to.unwrap());
        assert_eq!((gap.subject.as_str(), to), ("d1", start.plus(at)));
        // A minute between two readings, and the lag for late events.
        assert!(to.since(from) <= MINUTE * 17, "{from} to {to}");
    }
}

#[test]
fn a_removal_that_only_a_list_shows_leaves_a_gap_back_to_the_last_list() {
    let start: Instant = START.parse().unwrap();
    for minutes in [200, 219, 230] {
        let at = MINUTE * minutes + Duration::from_millis(500);
        let (world, gap) = gap_of_removal(Removed { at, is_shown: false });
        let (from, to) = (gap.from.unwrap(), gap.to.unwrap());
        let lists = world.times_of("the computers");
        let (before, after): (Vec<Duration>, Vec<Duration>) = lists.into_iter().partition(|list| *list < at);
        let (last, first) = (start.plus(*before.last().unwrap()), start.plus(after[0]));
        assert!(from <= last && last.since(from) <= MINUTE * 17, "from {from}, the last list at {last}");
        assert!(to >= first && to.since(first) <= MINUTE, "to {to}, the first list without it at {first}");
        assert!(after.len() > 60, "without activity the list is requested every minute");
    }
}

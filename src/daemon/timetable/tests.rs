use super::*;
use crate::config::Cron;
use crate::model::Stream;

mod delays;

const NOON: &str = "2026-11-20T12:00:00Z";
const CONNECTIONS: Task = Task::Read(Stream::Connections);
const BILLING: Task = Task::Read(Stream::Billing);

fn at(text: &str) -> Instant {
    text.parse().unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn schedule(connections: &str) -> Schedule {
    let cron = |text: &str| text.parse::<Cron>().unwrap();
    Schedule {
        connections: cron(connections),
        activity: cron("*/5 * * * *"),
        billing: cron("*/15 * * * *"),
        inventory: cron("0 3 * * *"),
        verify: cron("0 4 * * SUN"),
        reports: cron("20 * * * *"),
        retention: cron("40 3 * * *"),
    }
}

fn table(teams: &[&str], slots: usize) -> Timetable {
    let mut table = Timetable::new(schedule("* * * * *"), vec![CONNECTIONS], slots, 7);
    teams.iter().for_each(|team| table.add(&TeamId::from(*team), at(NOON)));
    table
}

fn started(next: Next) -> (String, Task) {
    match next {
        Next::Start(team, task) => (team.to_string(), task),
        Next::Wait(until) => panic!("nothing before {until:?}"),
    }
}

const DONE: RunOutcome = RunOutcome::Done { is_unfinished: false };
const FAILED: RunOutcome = RunOutcome::Failed { not_before: None };

fn left(now: Instant, left: u64) -> Option<Urgency> {
    Some(Urgency { loss_at: Some(now.plus(seconds(left))), span: Some(seconds(90 * 86_400)) })
}

/// Runs the only task of one team to its end, and returns the time at which it is due again.
fn due_after(table: &mut Timetable, began: Instant, ended: Instant, outcome: RunOutcome) -> Instant {
    let (team, task) = started(table.next(began));
    table.finished(&TeamId::from(team.as_str()), task, ended, outcome, None);
    table.job(&TeamId::from(team.as_str()), task).unwrap().due
}

#[test]
fn each_team_runs_at_its_own_offset_after_each_scheduled_moment() {
    let mut table = table(&["t"], 4);
    let first = due_after(&mut table, at(NOON), at(NOON).plus(seconds(2)), DONE);
    assert!(first > at(NOON) && first <= at(NOON).plus(seconds(120)), "{first}");
    for n in 1..10 {
        let began = first.plus(seconds(60 * (n - 1)));
        assert_eq!(table.next(began.minus(seconds(1))), Next::Wait(Some(began)));
        assert_eq!(due_after(&mut table, began, began.plus(seconds(5)), DONE), first.plus(seconds(60 * n)), "{n}");
    }
}

#[test]
fn many_teams_are_spread_over_the_time_between_two_polls() {
    let names: Vec<String> = (0..600).map(|n| format!("team-{n}")).collect();
    let mut table = table(&[], 1_000);
    names.iter().for_each(|name| table.add(&TeamId::from(name.as_str()), at(NOON)));
    let mut a_second = [0_u32; 60];
    for _ in &names {
        let due = due_after(&mut table, at(NOON), at(NOON), DONE);
        a_second[usize::try_from(due.seconds().rem_euclid(60)).unwrap()] += 1;
    }
    assert!(a_second.iter().all(|count| (1..=30).contains(count)), "{a_second:?}");
}

#[test]
fn a_late_task_runs_once_and_immediately() {
    let mut table = table(&["t"], 4);
    let first = due_after(&mut table, at(NOON), at(NOON), DONE);
    let hour_late = first.plus(seconds(3_600));
    let next = due_after(&mut table, hour_late, hour_late, DONE);
    assert_eq!(next, hour_late.plus(seconds(60)), "not once for each missed moment");
    let long = next.plus(seconds(200));
    let due = due_after(&mut table, next, long, DONE);
    assert!(due <= long, "a run longer than its interval is followed by one more, at once");
    assert_eq!(due_after(&mut table, long, long, DONE), next.plus(seconds(240)), "and then by the schedule");
}

#[test]
fn a_team_runs_one_task_at_a_time() {
    let mut table = Timetable::new(schedule("* * * * *"), Task::ALL.to_vec(), 100, 7);
    table.add(&TeamId::from("t"), at(NOON));
    let mut run = BTreeSet::new();
    for _ in Task::ALL {
        let (_, task) = started(table.next(at(NOON)));
        assert_eq!(table.next(at(NOON)), Next::Wait(None), "its other tasks wait for the end of this one");
        table.finished(&TeamId::from("t"), task, at(NOON), DONE, None);
        run.insert(task);
    }
    assert_eq!(run.len(), 4);
}

#[test]
fn the_task_with_the_least_time_left_runs_first() {
    let mut table = table(&["much", "little", "none"], 1);
    let mut order = Vec::new();
    for _ in 0..3 {
        let (team, task) = started(table.next(at(NOON)));
        let of = match team.as_str() {
            "much" => 80 * 86_400,
            "little" => 2 * 86_400,
            _ => 60,
        };
        table.finished(&TeamId::from(team.as_str()), task, at(NOON), DONE, left(at(NOON), of));
    }
    let later = at(NOON).plus(seconds(600));
    for _ in 0..3 {
        let (team, task) = started(table.next(later));
        table.finished(&TeamId::from(team.as_str()), task, later, DONE, None);
        order.push(team);
    }
    assert_eq!(order, ["none", "little", "much"]);
}

/// The disk is full for a while: the team is read within a turn of its schedule after that, and other failures wait for longer.

#[test]
fn failing_teams_and_backfills_do_not_take_every_slot() {
    let names: Vec<String> = (0..40).map(|n| format!("t{n:02}")).collect();
    let mut table = table(&[], 8);
    names.iter().for_each(|name| table.add(&TeamId::from(name.as_str()), at(NOON)));
    // The first twenty fail, the next fifteen have a backfill, and five are up to date.
    for (n, name) in names.iter().enumerate() {
        let (team, task) = started(table.next(at(NOON)));
        assert_eq!(team, *name);
        let outcome = match n {
            0..20 => FAILED,
            20..35 => RunOutcome::Done { is_unfinished: true },
            _ => DONE,
        };
        // A backfill has less time left than the others, and still does not take every slot.
        let urgency = if n < 35 { left(at(NOON), 100_000) } else { left(at(NOON), 7_000_000) };
        table.finished(&TeamId::from(team.as_str()), task, at(NOON), outcome, urgency);
    }
    let later = at(NOON).plus(seconds(300));
    let mut running = Vec::new();
    while let Next::Start(team, _) = table.next(later) {
        running.push(team.to_string());
    }
    let within =
        |range: std::ops::Range<usize>| running.iter().filter(|team| names[range.clone()].contains(*team)).count();
    assert_eq!((running.len(), within(0..20), within(20..35), within(35..40)), (8, 2, 4, 2), "{running:?}");
}

#[test]
fn an_unfinished_task_continues_at_once_and_a_requested_task_runs_earlier() {
    let mut table = table(&["t"], 4);
    let unfinished = RunOutcome::Done { is_unfinished: true };
    assert_eq!(due_after(&mut table, at(NOON), at(NOON), unfinished), at(NOON));
    let due = due_after(&mut table, at(NOON), at(NOON), DONE);
    table.make_due(&TeamId::from("t"), CONNECTIONS, at(NOON).plus(seconds(1)));
    assert!(matches!(table.next(at(NOON).plus(seconds(1))), Next::Start(..)), "due only at {due}");
    table.make_due(&TeamId::from("t"), CONNECTIONS, at(NOON).plus(seconds(2)));
    table.finished(&TeamId::from("t"), CONNECTIONS, at(NOON).plus(seconds(3)), DONE, None);
    assert!(matches!(table.next(at(NOON).plus(seconds(3))), Next::Start(..)), "it was requested while it ran");
}

#[test]
fn billing_is_polled_earlier_at_a_high_rate_of_entries() {
    let mut table = Timetable::new(schedule("* * * * *"), vec![BILLING], 4, 7);
    table.add(&TeamId::from("t"), at(NOON));
    let mut due_at_rate = |now: Instant, time_for_ten: u64| {
        let (team, task) = started(table.next(now));
        let urgency = Urgency { loss_at: Some(now.plus(seconds(time_for_ten))), span: Some(seconds(time_for_ten)) };
        table.finished(&TeamId::from(team.as_str()), task, now, DONE, Some(urgency));
        table.job(&TeamId::from(team.as_str()), task).unwrap().due
    };
    let mut now = at(NOON);
    for _ in 0..5 {
        let due = due_at_rate(now, 40);
        assert!(due <= now.plus(seconds(20)), "{due}");
        now = due;
    }
    assert!(due_at_rate(now, 2_000_000).since(now) <= seconds(900), "never later than the schedule");
}

#[test]
fn a_clock_that_is_set_back_stops_no_task() {
    let mut table = table(&["t"], 4);
    due_after(&mut table, at(NOON), at(NOON), DONE);
    let moved_back = at("2026-11-18T12:00:00Z");
    match table.next(moved_back) {
        Next::Wait(Some(until)) => assert!(until <= moved_back.plus(seconds(120)), "{until}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_clock_that_is_set_back_during_a_run_does_not_delay_the_next_run() {
    let mut table = table(&["t"], 4);
    let moved_back = at("2026-11-18T12:00:00Z");
    let (team, task) = started(table.next(at(NOON)));
    assert!(matches!(table.next(moved_back), Next::Wait(_)));
    table.finished(&TeamId::from(team.as_str()), task, moved_back.plus(seconds(5)), DONE, None);
    let due = table.job(&TeamId::from(team.as_str()), task).unwrap().due;
    assert!(due <= moved_back.plus(seconds(65)), "{due}");
}

#[test]
fn a_new_schedule_applies_at_once() {
    let mut table = table(&["t"], 4);
    due_after(&mut table, at(NOON), at(NOON), DONE);
    table.reload(schedule("*/2 * * * * *"), vec![CONNECTIONS, BILLING], 4, at(NOON));
    let due = table.job(&TeamId::from("t"), CONNECTIONS).unwrap().due;
    assert!(due <= at(NOON).plus(seconds(4)), "{due}");
    assert_eq!(table.job(&TeamId::from("t"), BILLING).unwrap().due, at(NOON), "a new task is due now");
}

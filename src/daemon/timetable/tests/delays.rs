//! The delays after failures, after commits, and on request of the service.

use super::*;
use crate::daemon::job::{BACKOFF_FIRST, BACKOFF_MAX};

#[test]
fn failures_are_retried_with_growing_delays_and_refusals_rarely() {
    for (outcome, longest) in [(FAILED, BACKOFF_MAX), (RunOutcome::Refused, SLOW_RETRY)] {
        let mut table = table(&["t"], 4);
        let mut now = at(NOON);
        let mut waits = Vec::new();
        for _ in 0..16 {
            let due = due_after(&mut table, now, now, outcome);
            waits.push(due.since(now));
            now = due;
        }
        assert!(waits[0] <= BACKOFF_FIRST && waits.iter().all(|wait| *wait <= longest), "{waits:?}");
        assert!(*waits.last().unwrap() >= longest * 3 / 4 && waits[3] > waits[0], "{waits:?}");
        let due = due_after(&mut table, now, now, DONE);
        assert!(due.since(now) <= seconds(60), "once it works, the schedule is in force again");
    }
}

#[test]
fn all_delays_end_when_an_unreachable_service_answers_again() {
    let mut table = table(&["a", "b", "c", "d"], 8);
    let mut now = at(NOON);
    let round = |table: &mut Timetable, now: Instant, works: &str| {
        let mut run = Vec::new();
        while let Next::Start(team, task) = table.next(now) {
            table.finished(&team, task, now, if team.as_str() == works { DONE } else { FAILED }, None);
            run.push(team.to_string());
        }
        run
    };
    // The service is unreachable until every team waits for minutes.
    for _ in 0..12 {
        round(&mut table, now, "");
        now = now.plus(BACKOFF_MAX);
    }
    let (team, task) = started(table.next(now));
    table.finished(&TeamId::from(team.as_str()), task, now, DONE, None);
    let waiting = || ["a", "b", "c", "d"].into_iter().filter(|name| *name != team);
    let due = |table: &Timetable, name| table.job(&TeamId::from(name), CONNECTIONS).unwrap().due;
    assert!(waiting().all(|name| due(&table, name) <= now), "they are retried at once");
    // One success next to failures of other teams does not mean that the service is back.
    round(&mut table, now, &team);
    let soon = now.plus(seconds(2));
    round(&mut table, soon, &team);
    assert!(waiting().all(|name| due(&table, name) > soon), "they wait as before");
}

#[test]
fn a_new_token_is_tried_at_once_after_a_refusal() {
    let mut table = table(&["refused", "failed"], 4);
    let mut now = at(NOON);
    for _ in 0..12 {
        for outcome in [FAILED, RunOutcome::Refused] {
            while let Next::Start(team, task) = table.next(now) {
                let outcome = if team.as_str() == "failed" { FAILED } else { outcome };
                table.finished(&team, task, now, outcome, None);
            }
        }
        now = now.plus(seconds(1_000));
    }
    let state = |table: &Timetable, team: &str| table.job(&TeamId::from(team), CONNECTIONS).unwrap().clone();
    table.next(now);
    now = now.minus(seconds(200));
    let before = state(&table, "failed");
    table.retry_refused(now);
    assert!(state(&table, "refused").due <= now);
    assert_eq!(state(&table, "failed"), before);
}

#[test]
fn a_team_that_cannot_be_written_is_tried_again_within_a_turn_of_its_schedule() {
    for (outcome, cron, longest) in [
        (RunOutcome::Unwritten, "* * * * *", 60),
        (FAILED, "* * * * *", 120),
        (RunOutcome::Unwritten, "0 * * * *", 120),
    ] {
        let mut table = Timetable::new(schedule(cron), vec![CONNECTIONS], 4, 7);
        table.add(&TeamId::from("t"), at(NOON));
        let (mut now, mut waited) = (at(NOON), Duration::ZERO);
        for _ in 0..20 {
            let due = due_after(&mut table, now, now, outcome);
            waited = due.since(now).max(waited);
            now = due;
        }
        let span = seconds(longest / 2 + 1)..=seconds(longest);
        assert!(span.contains(&waited), "{outcome:?} by {cron}: {waited:?}");
    }
}

#[test]
fn a_retry_after_for_the_service_delays_every_team() {
    let mut table = table(&["a", "b"], 4);
    table.pause(at(NOON).plus(seconds(90)));
    assert_eq!(table.next(at(NOON)), Next::Wait(Some(at(NOON).plus(seconds(90)))));
    assert!(matches!(table.next(at(NOON).plus(seconds(90))), Next::Start(..)));
}

#[test]
fn a_team_that_must_wait_runs_no_other_task_in_the_meantime() {
    let mut table = Timetable::new(schedule("* * * * *"), vec![CONNECTIONS, BILLING], 4, 7);
    let team = TeamId::from("t");
    table.add(&team, at(NOON));
    let (_, first) = started(table.next(at(NOON)));
    let asked = RunOutcome::Failed { not_before: Some(seconds(600)) };
    table.finished(&team, first, at(NOON), asked, None);
    table.make_due(&team, if first == BILLING { CONNECTIONS } else { BILLING }, at(NOON));
    assert_eq!(table.next(at(NOON).plus(seconds(1))), Next::Wait(Some(at(NOON).plus(seconds(600)))));
    assert!(matches!(table.next(at(NOON).plus(seconds(600))), Next::Start(..)));
}

#[test]
fn all_due_tasks_run_after_the_pause_that_follows_a_commit() {
    let mut table = Timetable::new(schedule("* * * * *"), vec![CONNECTIONS, BILLING], 4, 7);
    let team = TeamId::from("t");
    table.add(&team, at(NOON));
    let (_, first) = started(table.next(at(NOON)));
    table.finished(&team, first, at(NOON), DONE, None);
    table.pause_team(&team, at(NOON).plus(seconds(60)));
    table.pause_team(&team, at(NOON).plus(seconds(30)));
    assert_eq!(table.next(at(NOON)), Next::Wait(Some(at(NOON).plus(seconds(60)))));
    let (_, second) = started(table.next(at(NOON).plus(seconds(60))));
    assert_ne!(first, second);
    table.finished(&team, second, at(NOON).plus(seconds(61)), DONE, None);
    // Nothing was committed, so the team does not pause.
    assert_eq!(started(table.next(at(NOON).plus(seconds(120)))).1, CONNECTIONS);
}

#[test]
fn a_team_that_loses_commits_to_another_writer_pauses_longer_each_time() {
    let mut table = Timetable::new(schedule("* * * * * *"), vec![CONNECTIONS, BILLING], 4, 7);
    let team = TeamId::from("t");
    table.add(&team, at(NOON));
    let (mut now, mut waits) = (at(NOON), Vec::new());
    for _ in 0..12 {
        let (_, task) = started(table.next(now));
        table.finished(&team, task, now, RunOutcome::Fenced, None);
        // No task starts before the end of the wait.
        let Next::Wait(Some(until)) = table.next(now) else { panic!("begun at once") };
        waits.push(until.since(now));
        now = until;
    }
    assert!(waits[0] <= BACKOFF_FIRST && waits.iter().all(|wait| *wait <= BACKOFF_MAX), "{waits:?}");
    assert!(waits[11] > waits[0] * 8, "{waits:?}");
    let (_, task) = started(table.next(now));
    table.finished(&team, task, now, DONE, None);
    assert_eq!(table.job(&team, task).unwrap().failures, 0);
}

#[test]
fn a_team_that_must_wait_repeatedly_is_read_less_and_less_often() {
    let mut table = Timetable::new(schedule("* * * * *"), vec![CONNECTIONS], 4, 7);
    let team = TeamId::from("t");
    table.add(&team, at(NOON));
    let mut now = at(NOON);
    let mut waits = Vec::new();
    for _ in 0..6 {
        assert!(matches!(table.next(now), Next::Start(..)));
        table.finished(&team, CONNECTIONS, now, RunOutcome::Failed { not_before: Some(seconds(600)) }, None);
        let due = table.job(&team, CONNECTIONS).unwrap().due;
        waits.push(due.since(now).as_secs());
        now = due;
    }
    assert_eq!(waits, [600, 1_200, 1_800, 2_400, 2_400, 2_400]);
}

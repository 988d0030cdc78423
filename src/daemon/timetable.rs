//! Which task runs next, for any number of teams. Pure: time is an argument, chance is a seed.
//!
//! A task of a team is due at the moments of its schedule. Each task shifts them by its own offset, so many teams do
//! not start together. A late task runs once. A team runs one task at a time. Of the due tasks, the task with the least
//! time left until a loss runs first. Retries, backfills and inventory scans each have a limited share of the slots, so
//! they do not delay the newest events of other teams.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::config::Schedule;
use crate::model::{Instant, TeamId};

use super::job::{Job, Lane, RunOutcome, SLOW_RETRY, Task, hash, next_due, offset};
use crate::pipeline::Urgency;

/// After this number of consecutive failures, of any teams, the service or the archive's disk counts as unreachable. When a run
/// succeeds again, failed tasks are retried at once.
const OUTAGE_FAILURES: u32 = 3;
/// The minimum interval of such retries.
const RECOVERY_EVERY: Duration = Duration::from_secs(30);

/// The next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Start(TeamId, Task),
    /// Nothing starts before this moment, unless a run ends.
    Wait(Option<Instant>),
}

/// The tasks of all teams, and when each is due.
#[derive(Debug)]
pub struct Timetable {
    schedule: Schedule,
    tasks: Vec<Task>,
    slots: usize,
    seed: u64,
    jobs: BTreeMap<(TeamId, Task), Job>,
    busy: BTreeMap<TeamId, Lane>,
    /// Teams that start no run, and until when.
    delayed: BTreeMap<TeamId, Instant>,
    /// The service asked all teams to wait.
    paused_until: Option<Instant>,
    /// Consecutive failures, and the last time at which the service answered again.
    failures_in_a_row: u32,
    recovered_at: Option<Instant>,
    seen: Option<Instant>,
}

impl Timetable {
    /// `slots`: the maximum number of parallel runs.
    pub fn new(schedule: Schedule, tasks: Vec<Task>, slots: usize, seed: u64) -> Self {
        Self {
            schedule,
            tasks,
            slots: slots.max(1),
            seed,
            jobs: BTreeMap::new(),
            busy: BTreeMap::new(),
            delayed: BTreeMap::new(),
            paused_until: None,
            failures_in_a_row: 0,
            recovered_at: None,
            seen: None,
        }
    }

    /// Adds a team: all of its tasks are due now. A known team does not change.
    pub fn add(&mut self, team: &TeamId, now: Instant) {
        for task in self.tasks.clone() {
            let offset = offset(self.seed, team, task, &self.schedule, now);
            self.jobs.entry((team.clone(), task)).or_insert_with(|| Job::new(task, offset, now));
        }
    }

    /// Removes a team. The end of its current run is then ignored.
    pub fn remove(&mut self, team: &TeamId) {
        self.jobs.retain(|(of, _), _| of != team);
    }

    pub fn teams(&self) -> BTreeSet<TeamId> {
        self.jobs.keys().map(|(team, _)| team.clone()).collect()
    }

    /// The next action at `now`. The caller starts the returned task.
    pub fn next(&mut self, now: Instant) -> Next {
        self.notice_clock(now);
        if let Some(until) = self.paused_until.filter(|until| now < *until) {
            return Next::Wait(Some(until));
        }
        self.delayed.retain(|_, until| now < *until);
        let free = self.free_lanes();
        let due = self.jobs.iter().filter(|((team, _), job)| job.due <= now && !self.busy.contains_key(team));
        let due = due.filter(|((team, _), _)| !self.delayed.contains_key(team));
        let first = due
            .filter(|((_, task), job)| free.contains(&job.lane(*task)))
            .min_by_key(|(key, job)| (job.urgency.rank(now), job.due, *key))
            .map(|((team, task), job)| (team.clone(), *task, job.lane(*task)));
        if let Some((team, task, lane)) = first {
            self.busy.insert(team.clone(), lane);
            let job = self.jobs.get_mut(&(team.clone(), task)).expect("BUG: the job is among the due jobs");
            (job.started, job.is_due_again) = (Some(now), false);
            return Next::Start(team, task);
        }
        let later = self.jobs.iter().filter(|((team, _), _)| !self.busy.contains_key(team));
        let asked = |team| self.delayed.get(team).copied().unwrap_or(now);
        Next::Wait(later.map(|((team, _), job)| job.due.max(asked(team))).filter(|due| now < *due).min())
    }

    /// Notes the end of a run.
    pub fn finished(&mut self, team: &TeamId, task: Task, now: Instant, outcome: RunOutcome, urgency: Option<Urgency>) {
        self.busy.remove(team);
        let Some(job) = self.jobs.get_mut(&(team.clone(), task)) else { return };
        job.finished(task, now, outcome, urgency, &self.schedule, self.seed ^ hash(team, task));
        match outcome {
            RunOutcome::Failed { not_before } => {
                self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
                // Every other task of the team would use the same service.
                let asked = not_before.filter(|asked| !asked.is_zero()).map(|asked| (team.clone(), now.plus(asked)));
                self.delayed.extend(asked);
            }
            RunOutcome::Unwritten => self.failures_in_a_row = self.failures_in_a_row.saturating_add(1),
            // Every other task of the team would write into the same ledger.
            RunOutcome::Fenced => drop(self.delayed.insert(team.clone(), job.due)),
            RunOutcome::Done { .. } if std::mem::take(&mut self.failures_in_a_row) >= OUTAGE_FAILURES => {
                self.recovered(now);
            }
            RunOutcome::Done { .. } | RunOutcome::Refused => {}
        }
    }

    /// The service answers again, or the disk takes files again.
    fn recovered(&mut self, now: Instant) {
        if self.recovered_at.is_some_and(|at| now < at.plus(RECOVERY_EVERY)) {
            return;
        }
        self.recovered_at = Some(now);
        for job in self.jobs.values_mut().filter(|job| job.failures > 0 && !job.is_refused) {
            job.due = job.due.min(now);
        }
    }

    /// Makes a task due now, to read a new event. A task that waits after a failure still waits.
    pub fn make_due(&mut self, team: &TeamId, task: Task, now: Instant) {
        if let Some(job) = self.jobs.get_mut(&(team.clone(), task)) {
            match (job.started, job.failures) {
                (Some(_), _) => job.is_due_again = true,
                (None, 0) => job.due = job.due.min(now),
                (None, 1..) => {}
            }
        }
    }

    /// No task of the team starts before `until`.
    pub fn pause_team(&mut self, team: &TeamId, until: Instant) {
        let end = self.delayed.entry(team.clone()).or_insert(until);
        *end = until.max(*end);
    }

    /// Retries refused tasks now, because the token changed.
    pub fn retry_refused(&mut self, now: Instant) {
        for job in self.jobs.values_mut().filter(|job| job.is_refused) {
            (job.due, job.failures) = (job.due.min(now), job.failures.min(1));
        }
    }

    /// No task starts before `until`, because the service asked for a pause.
    pub fn pause(&mut self, until: Instant) {
        self.paused_until = Some(self.paused_until.map_or(until, |held| held.max(until)));
    }

    /// Applies a new schedule.
    pub fn reload(&mut self, schedule: Schedule, tasks: Vec<Task>, slots: usize, now: Instant) {
        (self.schedule, self.slots, self.paused_until) = (schedule, slots.max(1), None);
        self.jobs.retain(|(_, task), _| tasks.contains(task));
        self.tasks = tasks;
        self.teams().iter().for_each(|team| self.add(team, now));
        let (schedule, seed) = (&self.schedule, self.seed);
        for ((team, task), job) in &mut self.jobs {
            job.offset = offset(seed, team, *task, schedule, now);
            if job.failures == 0 && now < job.due {
                job.due = next_due(task.cron(schedule), job.offset, now);
            }
        }
    }

    pub fn job(&self, team: &TeamId, task: Task) -> Option<&Job> {
        self.jobs.get(&(team.clone(), task))
    }

    /// After the clock was set back, no task must wait until the clock has caught up.
    fn notice_clock(&mut self, now: Instant) {
        if self.seen.is_some_and(|seen| now < seen) {
            (self.paused_until, self.recovered_at) = (None, None);
            self.delayed.clear();
            for ((_, task), job) in &mut self.jobs {
                let longest = if job.failures > 0 { now.plus(SLOW_RETRY) } else { Instant::LATEST };
                job.due = job.due.min(next_due(task.cron(&self.schedule), job.offset, now)).min(longest);
            }
        }
        self.seen = Some(now);
    }

    /// The lanes that have a free slot.
    fn free_lanes(&self) -> Vec<Lane> {
        let used = |lane| self.busy.values().filter(|of| **of == lane).count();
        if self.busy.len() >= self.slots {
            return Vec::new();
        }
        let shares = [(Lane::Newest, 1), (Lane::CatchUp, 2), (Lane::Inventory, 4), (Lane::Retry, 4)];
        let free = shares.into_iter().filter(|(lane, share)| used(*lane) < (self.slots / share).max(1));
        free.map(|(lane, _)| lane).collect()
    }
}

#[cfg(test)]
mod tests;

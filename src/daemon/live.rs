//! The daemon's state for display: by its port, its metrics and its alerts.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::api::RequestCounts;
use crate::archive::{Finding, TeamState};
use crate::config::Schedule;
use crate::model::{Instant, LedgerSeq, Range, Severity, Shard, Stream, TeamId};

use super::job::{Job, Task};
use super::late::{Late, cutoff};
use super::open_teams::OpenTeams;
use super::task_run::TaskRun;
use crate::pipeline::{CommitCounts, TeamStatus};

/// One task of one team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLive {
    pub job: Job,
    /// The last success, by this machine's clock.
    pub done_at: Option<Instant>,
    /// The last error; `None` after a success.
    pub error: Option<String>,
    /// The sums of this process.
    pub counts: CommitCounts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamLive {
    /// As of `seen_at`; `None` before the first run.
    pub status: Option<TeamStatus>,
    pub seen_at: Option<Instant>,
    pub tasks: BTreeMap<Task, TaskLive>,
    /// Open gaps with their ledger lines, in order.
    pub gaps: Arc<Vec<(LedgerSeq, Finding)>>,
    /// The ledger's last line when this process first ran a task of the team.
    pub opened_at: Option<LedgerSeq>,
}

/// The result of the last check of the whole archive that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    pub at: Instant,
    pub faults: usize,
    /// The first faults, each by its kind and place.
    pub named: Vec<String>,
}

impl Verified {
    /// The most faults that are named.
    pub const NAMED_MAX: usize = 100;
}

/// The last run that published the open tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Publication {
    pub at: Instant,
    /// Why it failed.
    pub error: Option<String>,
    /// The last run that succeeded.
    pub done_at: Option<Instant>,
}

/// The detections of one report in its last run for the alerts. It names no person: digests tell detections apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// The report's id, its name on the command line, and its title.
    pub report: String,
    pub name: String,
    pub title: String,
    pub period: Range,
    /// The same detection has the same key in another run.
    pub subjects: BTreeMap<String, Severity>,
}

/// The results of the reports that detect something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detections {
    /// The last run that ended.
    pub at: Option<Instant>,
    /// Successful reports, by id.
    pub found: BTreeMap<String, Arc<Detected>>,
    /// Failed reports, with the reasons.
    pub failed: BTreeMap<String, String>,
}

impl Detections {
    /// In place of a report's id: no report could run.
    pub const ALL: &str = "all";
}

/// All state for display at one moment.
#[derive(Debug, Clone, Default)]
pub struct LiveSnapshot {
    pub teams: BTreeMap<TeamId, TeamLive>,
    /// The counts of teams that this process no longer reads.
    pub forgotten: BTreeMap<Task, CommitCounts>,
    pub verified: Option<Verified>,
    /// Why the last check of the archive did not end; `None` after one that ended.
    pub check_error: Option<String>,
    pub published: Option<Publication>,
    pub detections: Detections,
    /// The error of the last list of teams.
    pub listing_error: Option<String>,
    /// Alerts by target and result.
    pub alerts: BTreeMap<(&'static str, &'static str), u64>,
    pub schedule: Option<Schedule>,
    /// The monotonic time of the last iteration of the daemon's loop.
    pub beat: Option<Duration>,
    /// The service has listed its teams.
    pub is_listed: bool,
    /// The seconds by which the service's clock is ahead of the machine's.
    pub clock_skew: Option<i64>,
}

/// Shared between the daemon, which writes, and its readers.
#[derive(Default)]
pub struct Live {
    shown: Mutex<LiveSnapshot>,
    requests: Arc<RequestCounts>,
    open_teams: OnceLock<Arc<OpenTeams>>,
    shard: Shard,
}

impl Live {
    /// The state of a daemon that reads only the teams of `shard`.
    pub fn new(requests: Arc<RequestCounts>, shard: Shard) -> Self {
        Self { requests, shard, ..Self::default() }
    }

    /// The part of the fleet that the daemon reads.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// The monotonic time of the last iteration of the daemon's loop.
    pub fn last_beat(&self) -> Option<Duration> {
        self.shown.lock().beat
    }

    /// Shows the end of a run that publishes the open tables.
    pub fn publication_ended(&self, at: Instant, error: Option<String>) {
        self.change(|shown| {
            let before = shown.published.as_ref().and_then(|published| published.done_at);
            let done_at = if error.is_none() { Some(at) } else { before };
            shown.published = Some(Publication { at, error, done_at });
        });
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut LiveSnapshot)) {
        change(&mut self.shown.lock());
    }

    /// Shows the end of a run, and logs it. `failures` counts the task's consecutive failures.
    pub(super) fn run_ended(&self, run: TaskRun, failures: u32, now: Instant) {
        let mut shown = self.shown.lock();
        let live = shown.teams.entry(run.team.clone()).or_default();
        let had_failed = live.tasks.get(&run.task).is_some_and(|task| task.error.is_some());
        run.log(failures, had_failed);
        if run.status.is_some() {
            (live.status, live.seen_at, live.gaps) = (run.status, Some(now), run.gaps);
            live.opened_at = live.opened_at.or(run.began_at);
        }
        if let Some(task) = live.tasks.get_mut(&run.task) {
            task.counts.add(&run.committed);
            task.done_at = if run.error.is_none() { Some(now) } else { task.done_at };
            task.error = run.error;
        }
    }

    /// Shows the state of a team's tasks.
    pub(super) fn show_tasks<'j>(&self, team: &TeamId, job_of: impl Fn(Task) -> Option<&'j Job>) {
        let mut shown = self.shown.lock();
        let live = shown.teams.entry(team.clone()).or_default();
        for (task, job) in Task::ALL.into_iter().filter_map(|task| Some((task, job_of(task)?.clone()))) {
            let new = TaskLive { job: job.clone(), done_at: None, error: None, counts: CommitCounts::default() };
            live.tasks.entry(task).or_insert(new).job = job;
        }
    }

    /// Removes a team from the display, but keeps the sums of its tasks.
    pub(super) fn forget(&self, team: &TeamId) {
        let shown = &mut *self.shown.lock();
        for (task, live) in shown.teams.remove(team).into_iter().flat_map(|team| team.tasks) {
            shown.forgotten.entry(task).or_default().add(&live.counts);
        }
    }

    pub(super) fn listed(&self, error: Option<String>) {
        self.change(|shown| {
            shown.is_listed |= error.is_none();
            shown.listing_error = error;
        });
    }

    /// Shows that the reports ran for the alerts.
    pub fn detected(&self, detections: Detections) {
        self.change(|shown| shown.detections = detections);
    }

    /// Shows that no report could run for the alerts. The earlier detections stay, because they may still hold.
    pub fn detection_failed(&self, error: String) {
        self.change(|shown| shown.detections.failed = BTreeMap::from([(Detections::ALL.to_owned(), error)]));
    }

    pub fn count_alert(&self, target: &'static str, result: &'static str) {
        self.change(|shown| *shown.alerts.entry((target, result)).or_default() += 1);
    }

    /// Shows the last check of an earlier process, unless this process has checked the archive.
    pub fn recall_check(&self, last: Option<Verified>) {
        self.change(|shown| shown.verified = shown.verified.take().or(last));
    }

    /// The error of the last list of teams.
    pub fn listing_error(&self) -> Option<String> {
        self.shown.lock().listing_error.clone()
    }

    pub(super) fn set_open_teams(&self, open_teams: Arc<OpenTeams>) {
        let _ = self.open_teams.set(open_teams);
    }

    /// Passes the state of a team after its last commit to `read`, if the daemon has it in memory. Returns whether it
    /// has. Waits for a running commit, so a thread that must not block must not call it.
    pub fn with_state(&self, team: &TeamId, read: &mut dyn FnMut(&TeamState)) -> bool {
        self.open_teams.get().is_some_and(|open_teams| open_teams.with_state(team, read))
    }

    /// The approximate memory of the teams that are open, and their number.
    pub fn open_size(&self) -> (usize, usize) {
        self.open_teams.get().map(|open_teams| open_teams.size()).unwrap_or_default()
    }

    /// The last line of each team's ledger that the daemon knows of.
    pub fn seqs(&self) -> BTreeMap<TeamId, LedgerSeq> {
        self.of_statuses(|status| LedgerSeq(status.ledger_seq))
    }

    /// The file with the name of each team that had a run.
    pub fn name_files(&self) -> BTreeMap<TeamId, Option<String>> {
        self.of_statuses(|status| status.name_file.clone())
    }

    fn of_statuses<T>(&self, of: impl Fn(&TeamStatus) -> T) -> BTreeMap<TeamId, T> {
        let shown = self.shown.lock();
        let known = shown.teams.iter().filter_map(|(team, live)| Some((team.clone(), of(live.status.as_ref()?))));
        known.collect()
    }

    pub fn snapshot(&self) -> LiveSnapshot {
        self.shown.lock().clone()
    }

    /// The number of requests to the service by their result. A repeated request counts under `retry` and under its result.
    pub fn requests(&self) -> [(&'static str, u64); 8] {
        let now = self.requests.snapshot();
        [
            ("answered", now.answered),
            ("refused", now.refused),
            ("not_found", now.not_found),
            ("rejected", now.rejected),
            ("throttled", now.throttled),
            ("unavailable", now.unavailable),
            ("unexpected", now.unexpected),
            ("retry", now.retries),
        ]
    }

    /// The streams that are late at `now`; `None` before the first list of the teams.
    pub fn late(&self, now: Instant) -> Option<Vec<Late>> {
        let shown = &mut *self.shown.lock();
        // After the clock was set back, no success lies in the future: it would hide failures.
        for team in shown.teams.values_mut() {
            team.seen_at = team.seen_at.min(Some(now));
            team.tasks.values_mut().for_each(|task| task.done_at = task.done_at.min(Some(now)));
        }
        if !shown.is_listed && shown.teams.is_empty() {
            return None;
        }
        let schedule = shown.schedule.as_ref()?;
        let cutoffs = Stream::ALL.map(|stream| cutoff(Task::Read(stream).cron(schedule), now));
        let late = shown.teams.iter().flat_map(|(team, live)| {
            live.tasks.iter().filter_map(move |(task, shown)| {
                let Task::Read(stream) = *task else { return None };
                let is_late = shown.done_at.is_none_or(|at| at < cutoffs[stream as usize]);
                let (done_at, error) = (shown.done_at, shown.error.clone());
                is_late.then(|| Late { team: team.clone(), stream, done_at, error })
            })
        });
        Some(late.collect())
    }
}

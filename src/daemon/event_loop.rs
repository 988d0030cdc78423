//! The daemon's loop: it owns the timetable and starts the runs that are due, until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use crate::api::ApiError;
use crate::archive::{ArchiveError, FaultCode, verify};
use crate::config::Schedule;
use crate::lake;
use crate::model::{Instant, Stream, TeamId};

use super::job::{RunOutcome, Task};
use super::live::{Live, Verified};
use super::open_teams::{OPEN_TEAMS_BYTES_MAX, OpenTeams};
use super::task_run::{TaskRun, run_task};
use super::timetable::{Next, Timetable};
use crate::pipeline::{Edges, EventBudget, Settings, Workers};

/// The loop runs at least this often.
const ROUND_MAX: Duration = Duration::from_secs(1);
/// The time that running tasks have to end after a stop.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// When the service asks this number of consecutive runs to wait, all teams wait.
const THROTTLED_RUNS_MAX: u32 = 4;
/// A check of the archive that did not end is repeated after this time.
const CHECK_RETRY: Duration = Duration::from_secs(3_600);
/// The minimum number of parallel runs.
const SLOTS_MIN: usize = 8;

/// A command to the daemon.
pub enum DaemonCommand {
    /// A new configuration, checked and complete.
    Reload(Box<(Edges, Schedule)>),
    /// The token changed: retry the refused tasks.
    TokenChanged,
    /// Stop. Running tasks may finish for a moment.
    Stop,
}

/// The daemon, ready to run.
pub struct Daemon {
    open_teams: Arc<OpenTeams>,
    pub(super) edges: Edges,
    schedule: Schedule,
    pub(super) live: Arc<Live>,
    pub(super) timetable: Timetable,
    /// Running work: tasks, a list of the teams, a check of the archive.
    running: FuturesUnordered<BoxFuture<'static, Event>>,
    active_runs: usize,
    is_checking: bool,
    /// The time of the next list of teams, by the monotonic clock; `None` during a list.
    pub(super) next_listing_at: Option<Duration>,
    /// The last check of the archive. The next one is at the first moment of its schedule after this.
    checked_at: Instant,
    /// When to repeat a check that did not end, by the monotonic clock.
    recheck_at: Option<Duration>,
    /// Consecutive runs that the service asked to wait.
    throttled_runs: u32,
}

enum Event {
    RunEnded(Box<TaskRun>),
    /// The answer to a list of the teams, and the settings at the request.
    Listed(Arc<Settings>, Result<Vec<TeamId>, ApiError>),
    /// The result of a check of the archive, or why it did not end.
    Checked(Result<Verified, String>),
    Command(Option<DaemonCommand>),
    Time,
}

impl Daemon {
    /// `seed` spreads the starts of many teams.
    pub fn new(edges: Edges, schedule: Schedule, live: Arc<Live>, seed: u64) -> Self {
        let open_teams = Arc::new(OpenTeams::new(
            edges.archive.clone(),
            edges.clock.clone(),
            edges.workers,
            OPEN_TEAMS_BYTES_MAX,
            EventBudget::of(&edges.settings),
        ));
        live.set_open_teams(open_teams.clone());
        let now = edges.clock.now();
        let tasks = Task::all_of(&edges.settings);
        live.set_schedule(schedule.clone());
        Self {
            open_teams,
            timetable: Timetable::new(schedule.clone(), tasks, slots(&edges.settings), seed),
            checked_at: now,
            recheck_at: None,
            edges,
            schedule,
            live,
            running: FuturesUnordered::new(),
            active_runs: 0,
            is_checking: false,
            next_listing_at: Some(Duration::ZERO),
            throttled_runs: 0,
        }
    }

    /// Runs until a command stops it, or the channel of commands is closed.
    pub async fn run(mut self, mut commands: mpsc::UnboundedReceiver<DaemonCommand>) {
        self.add_known_teams();
        loop {
            let wait = self.start_due_tasks();
            match self.next_event(&mut commands, wait).await {
                Event::RunEnded(run) => self.run_ended(*run),
                Event::Listed(settings, listed) if Arc::ptr_eq(&settings, &self.edges.settings) => self.listed(listed),
                // A reload replaced the service or the named teams: this answer is about the old ones.
                Event::Listed(..) => {}
                Event::Checked(verified) => self.checked(verified),
                Event::Command(Some(DaemonCommand::Reload(new))) => self.reload(*new),
                Event::Command(Some(DaemonCommand::TokenChanged)) => {
                    tracing::info!("the token changed: the daemon runs the refused tasks again");
                    self.timetable.retry_refused(self.edges.clock.now());
                    self.next_listing_at = Some(Duration::ZERO);
                }
                Event::Command(Some(DaemonCommand::Stop) | None) => break,
                Event::Time => {}
            }
        }
        self.shut_down().await;
    }

    fn start_due_tasks(&mut self) -> Duration {
        let now = self.edges.clock.now();
        let monotonic = self.edges.clock.monotonic();
        self.live.beat(monotonic);
        if self.edges.settings.teams.is_empty() && self.next_listing_at.take_if(|at| *at <= monotonic).is_some() {
            let edges = self.edges.clone();
            let list = async move {
                let listed = edges.source.teams().await.map(|served| served.body);
                Event::Listed(edges.settings, listed)
            };
            self.running.push(list.boxed());
        }
        let check_next = self.schedule.verify.next_since(&mut self.checked_at, now);
        let is_due = check_next.is_some_and(|at| at <= now) || self.recheck_at.is_some_and(|at| at <= monotonic);
        if !self.is_checking && is_due {
            (self.is_checking, self.recheck_at) = (true, None);
            let check = check(self.edges.clone());
            self.running.push(check.map(Event::Checked).boxed());
        }
        loop {
            match self.timetable.next(now) {
                Next::Start(team, task) => self.start(team, task),
                Next::Wait(until) => return until.map_or(ROUND_MAX, |until| until.since(now).min(ROUND_MAX)),
            }
        }
    }

    fn start(&mut self, team: TeamId, task: Task) {
        self.show_tasks(&team);
        let run = run_task(self.open_teams.clone(), self.edges.clone(), team.clone(), task);
        let run = match self.edges.workers {
            Workers::Inline => run.boxed(),
            Workers::Threads => {
                let broken = move |error| {
                    tracing::error!(%team, task = task.as_str(), %error, "BUG: a run broke");
                    TaskRun::broken(team, task, format!("BUG: the run broke: {error}"))
                };
                tokio::spawn(run).map(|run| run.unwrap_or_else(broken)).boxed()
            }
        };
        self.running.push(run.map(|run| Event::RunEnded(Box::new(run))).boxed());
        self.active_runs += 1;
    }

    async fn next_event(&mut self, commands: &mut mpsc::UnboundedReceiver<DaemonCommand>, wait: Duration) -> Event {
        let mut time = self.edges.clock.sleep(wait).fuse();
        futures::select_biased! {
            command = commands.next() => Event::Command(command),
            event = self.running.select_next_some() => event,
            () = time => Event::Time,
        }
    }

    fn run_ended(&mut self, run: TaskRun) {
        self.active_runs -= 1;
        let now = self.edges.clock.now();
        let (team, task, outcome, committed) = (run.team.clone(), run.task, run.outcome, run.committed.clone());
        self.timetable.finished(&team, task, now, outcome, run.urgency);
        if committed.commits > 0 && !matches!(outcome, RunOutcome::Done { is_unfinished: true, .. }) {
            self.timetable.pause_team(&team, now.plus(self.edges.settings.commit_every));
        }
        self.back_off(outcome, now);
        let failures = self.timetable.job(&team, task).map_or(0, |job| job.failures);
        if task == Task::Read(Stream::Activity) && committed.rows > 0 {
            // Activity may report changes of people and computers. The scan decides.
            self.timetable.make_due(&team, Task::Inventory, now);
            if committed.removals > 0 {
                self.timetable.make_due(&team, Task::Read(Stream::Connections), now);
            }
        }
        if self.timetable.job(&team, task).is_none() {
            // The team was removed during the run.
            return;
        }
        self.live.run_ended(run, failures, now, self.open_teams.size());
        self.show_tasks(&team);
    }

    /// If the service asks a team to wait, only this team waits. If it asks several teams in a row, all teams wait.
    fn back_off(&mut self, outcome: RunOutcome, now: Instant) {
        match outcome {
            RunOutcome::Failed { not_before: Some(wait) } => {
                self.throttled_runs += 1;
                if self.throttled_runs >= THROTTLED_RUNS_MAX {
                    tracing::warn!(seconds = wait.as_secs(), "the service throttles team after team: all teams wait");
                    self.timetable.pause(now.plus(wait));
                    self.throttled_runs = 0;
                }
            }
            _ => self.throttled_runs = 0,
        }
    }

    /// A check that did not end says nothing about the archive: the last result stays.
    fn checked(&mut self, checked: Result<Verified, String>) {
        self.is_checking = false;
        self.checked_at = self.edges.clock.now();
        match &checked {
            Err(error) => {
                tracing::error!(error, "the archive could not be checked: the daemon tries again in an hour");
                self.recheck_at = Some(self.edges.clock.monotonic() + CHECK_RETRY);
            }
            Ok(Verified { faults, named, .. }) => match named.first() {
                Some(first) => tracing::error!(faults, first, "the check of the archive found faults"),
                None => tracing::info!("the check of the whole archive found no fault"),
            },
        }
        self.live.change(|shown| {
            shown.check_error = checked.as_ref().err().cloned();
            shown.verified = checked.ok().or(shown.verified.take());
        });
    }

    fn reload(&mut self, (edges, schedule): (Edges, Schedule)) {
        let now = edges.clock.now();
        let tasks = Task::all_of(&edges.settings);
        self.timetable.reload(schedule.clone(), tasks.clone(), slots(&edges.settings), now);
        self.live.change(|shown| {
            shown.teams.values_mut().for_each(|team| team.tasks.retain(|task, _| tasks.contains(task)));
        });
        self.live.set_schedule(schedule.clone());
        (self.checked_at, self.next_listing_at) = (now, Some(Duration::ZERO));
        (self.edges, self.schedule) = (edges, schedule);
        self.follow_named_teams(now);
        self.timetable.retry_refused(now);
        for team in self.timetable.teams() {
            self.show_tasks(&team);
        }
        tracing::info!("the daemon uses the new configuration");
    }

    /// Waits a moment for the running tasks to end, then abandons the others. The next process reads their uncommitted
    /// events again.
    async fn shut_down(mut self) {
        let mut grace = self.edges.clock.sleep(STOP_GRACE).fuse();
        while self.active_runs > 0 {
            futures::select_biased! {
                event = self.running.select_next_some() => {
                    self.active_runs -= usize::from(matches!(event, Event::RunEnded(_)));
                }
                () = grace => {
                    let runs = self.active_runs;
                    tracing::info!(runs, "the daemon stops without waiting longer for its tasks: each commit is complete or absent");
                    return;
                }
            }
        }
    }
}

fn slots(settings: &Settings) -> usize {
    SLOTS_MIN.max(2 * settings.concurrency)
}

async fn check(edges: Edges) -> Result<Verified, String> {
    let archive = edges.archive.clone();
    let verify = move || {
        let mut report = verify(archive.store().as_ref(), &archive.checks)?;
        lake::verify_tables(&archive, &mut report);
        Ok::<_, ArchiveError>(report)
    };
    let report = edges.workers.run(verify).await;
    let at = edges.clock.now();
    match report {
        Ok(report) => {
            let unchecked = report.notices.iter().filter(|notice| notice.code == FaultCode::Rewritten);
            unchecked.for_each(|notice| tracing::warn!("verify of {}: {}", notice.object, notice.detail));
            let named = report.faults.iter().map(|fault| format!("{} {}", fault.code.into_str(), fault.object));
            Ok(Verified { at, faults: report.faults.len(), named: named.take(Verified::NAMED_MAX).collect() })
        }
        Err(error) if error.is_transient() => Err(error.to_string()),
        Err(error) => Ok(Verified { at, faults: 1, named: vec![error.to_string()] }),
    }
}

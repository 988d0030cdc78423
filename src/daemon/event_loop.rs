//! The daemon's loop: it owns the timetable and starts the runs that are due, until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use crate::api::ApiError;
use crate::config::Schedule;
use crate::model::{Instant, Stream, TeamId};

use super::archive_check::{ArchiveCheck, check};
use super::clock_skew;
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
/// The minimum number of parallel runs.
const SLOTS_MIN: usize = 8;

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
    pub(super) live: Arc<Live>,
    pub(super) timetable: Timetable,
    /// Running work: tasks, a list of the teams, a check of the archive.
    running: FuturesUnordered<BoxFuture<'static, Event>>,
    active_runs: usize,
    archive_check: ArchiveCheck,
    /// The time of the next list of teams, by the monotonic clock; `None` during a list.
    pub(super) next_listing_at: Option<Duration>,
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
        let open_teams = Arc::new(OpenTeams::new(OPEN_TEAMS_BYTES_MAX, EventBudget::of(&edges.settings)));
        live.set_open_teams(open_teams.clone());
        live.change(|shown| shown.schedule = Some(schedule.clone()));
        Self {
            open_teams,
            archive_check: ArchiveCheck::new(schedule.verify.clone(), edges.clock.now()),
            timetable: Timetable::new(schedule, Task::all_of(&edges.settings), slots(&edges.settings), seed),
            edges,
            live,
            running: FuturesUnordered::new(),
            active_runs: 0,
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
                Event::Checked(checked) => {
                    let clock = &self.edges.clock;
                    self.archive_check.ended(checked, clock.now(), clock.monotonic(), &self.live);
                }
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
        self.live.change(|shown| shown.beat = Some(monotonic));
        if self.edges.settings.teams.is_empty() && self.next_listing_at.take_if(|at| *at <= monotonic).is_some() {
            let edges = self.edges.clone();
            let list = async move {
                let listed = edges.source.teams().await.map(|served| served.body);
                Event::Listed(edges.settings, listed)
            };
            self.running.push(list.boxed());
        }
        if self.archive_check.starts(now, monotonic) {
            self.running.push(check(self.edges.clone()).map(Event::Checked).boxed());
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
        clock_skew::show(&self.live, run.clock_skew);
        let now = self.edges.clock.now();
        let (team, task) = (run.team.clone(), run.task);
        self.timetable.finished(&team, task, now, run.outcome, run.urgency);
        if run.committed.commits > 0 && run.outcome != (RunOutcome::Done { is_unfinished: true }) {
            self.timetable.pause_team(&team, now.plus(self.edges.settings.commit_every));
        }
        self.back_off(run.outcome, now);
        if task == Task::Read(Stream::Activity) && run.committed.rows > 0 {
            // Activity may report changes of people and computers. The scan decides.
            self.timetable.make_due(&team, Task::Inventory, now);
            if run.committed.removals > 0 {
                self.timetable.make_due(&team, Task::Read(Stream::Connections), now);
            }
        }
        // The team can be removed during the run.
        let Some(job) = self.timetable.job(&team, task) else { return };
        self.live.run_ended(run, job.failures, now);
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

    fn reload(&mut self, (edges, schedule): (Edges, Schedule)) {
        let now = edges.clock.now();
        let tasks = Task::all_of(&edges.settings);
        self.live.change(|shown| {
            shown.teams.values_mut().for_each(|team| team.tasks.retain(|task, _| tasks.contains(task)));
            shown.schedule = Some(schedule.clone());
        });
        self.archive_check.reload(schedule.verify.clone(), now);
        self.timetable.reload(schedule, tasks, slots(&edges.settings), now);
        (self.edges, self.next_listing_at) = (edges, Some(Duration::ZERO));
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

//! The daemon's loop: it owns the timetable and starts the runs that are due, until it is told to stop.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use crate::api::ApiError;
use crate::archive::{Archive, ArchiveError, VerifyOptions, verify};
use crate::config::Schedule;
use crate::lake;
use crate::model::{Instant, Stream, TeamId};

use super::job::{Outcome, Task};
use super::live::{Live, Verified};
use super::open_teams::{OPEN_TEAMS_BYTES_MAX, OpenTeams};
use super::task_run::{Edges, TaskRun, run_task};
use super::timetable::{Next, Timetable};
use crate::pipeline::{Budget, Workers};

/// The loop runs at least this often.
const ROUND_MAX: Duration = Duration::from_secs(1);
/// The time that running tasks have to end after a stop.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// When the service asks this number of consecutive runs to wait, all teams wait.
const ASKED_TO_WAIT_MAX: u32 = 4;
/// The minimum number of parallel runs.
const SLOTS_MIN: usize = 8;

/// A command to the daemon.
pub enum Command {
    /// A new configuration, checked and complete.
    Reload(Box<(Edges, Schedule)>),
    /// The token changed: retry the refused tasks.
    TokenChanged,
    /// Stop. Running tasks may finish for a moment.
    Stop,
}

/// The daemon, ready to run.
pub struct Daemon {
    pub(super) archive: Arc<Archive>,
    open_teams: Arc<OpenTeams>,
    pub(super) edges: Arc<Edges>,
    schedule: Schedule,
    pub(super) live: Arc<Live>,
    pub(super) timetable: Timetable,
    /// Running work: tasks, a list of the teams, a check of the archive.
    under_way: FuturesUnordered<BoxFuture<'static, Event>>,
    runs_under_way: usize,
    is_checking: bool,
    /// The time of the next list of teams, by the monotonic clock; `None` during a list.
    pub(super) listed_next: Option<Duration>,
    /// The last check of the archive. The next one is at the first moment of its schedule after this.
    checked_at: Instant,
    /// Teams that only the archive holds: the service has not listed them yet.
    pub(super) assumed: BTreeSet<TeamId>,
    /// Consecutive runs that the service asked to wait.
    asked_to_wait: u32,
}

enum Event {
    RunEnded(Box<TaskRun>),
    Listed(Result<Vec<TeamId>, ApiError>),
    Checked(Verified),
    Told(Option<Command>),
    Time,
}

impl Daemon {
    /// `seed` spreads the starts of many teams.
    pub fn new(archive: Arc<Archive>, edges: Edges, schedule: Schedule, live: Arc<Live>, seed: u64) -> Self {
        let open_teams = Arc::new(OpenTeams::new(
            archive.clone(),
            edges.clock.clone(),
            edges.workers,
            OPEN_TEAMS_BYTES_MAX,
            Budget::of(&edges.settings),
        ));
        live.set_open_teams(open_teams.clone());
        let now = edges.clock.now();
        let tasks = edges.tasks();
        live.set_schedule(schedule.clone());
        Self {
            archive,
            open_teams,
            timetable: Timetable::new(schedule.clone(), tasks, slots(&edges), seed),
            checked_at: now,
            edges: Arc::new(edges),
            schedule,
            live,
            under_way: FuturesUnordered::new(),
            runs_under_way: 0,
            is_checking: false,
            listed_next: Some(Duration::ZERO),
            assumed: BTreeSet::new(),
            asked_to_wait: 0,
        }
    }

    /// Runs until a command stops it, or the channel of commands is closed.
    pub async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        self.assume_teams();
        loop {
            let wait = self.start_due_tasks();
            match self.next_event(&mut commands, wait).await {
                Event::RunEnded(run) => self.run_ended(*run),
                Event::Listed(listed) => self.listed(listed),
                Event::Checked(verified) => self.checked(verified),
                Event::Told(Some(Command::Reload(new))) => self.reload(*new),
                Event::Told(Some(Command::TokenChanged)) => {
                    tracing::info!("the token is another one: what was refused is tried again");
                    self.timetable.retry_refused(self.edges.clock.now());
                    self.listed_next = Some(Duration::ZERO);
                }
                Event::Told(Some(Command::Stop) | None) => break,
                Event::Time => {}
            }
        }
        self.shut_down().await;
    }

    fn start_due_tasks(&mut self) -> Duration {
        let now = self.edges.clock.now();
        let monotonic = self.edges.clock.monotonic();
        self.live.beat(monotonic);
        if self.edges.settings.teams.is_empty() && self.listed_next.take_if(|at| *at <= monotonic).is_some() {
            let source = self.edges.source.clone();
            self.under_way.push(async move { Event::Listed(source.teams().await.map(|served| served.body)) }.boxed());
        }
        let check_next = self.schedule.verify.next_since(&mut self.checked_at, now);
        if !self.is_checking && check_next.is_some_and(|at| at <= now) {
            self.is_checking = true;
            let check = check(self.archive.clone(), self.edges.clone());
            self.under_way.push(check.map(Event::Checked).boxed());
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
        self.under_way.push(run.map(|run| Event::RunEnded(Box::new(run))).boxed());
        self.runs_under_way += 1;
    }

    async fn next_event(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>, wait: Duration) -> Event {
        let mut time = self.edges.clock.sleep(wait).fuse();
        futures::select_biased! {
            command = commands.next() => Event::Told(command),
            event = self.under_way.select_next_some() => event,
            () = time => Event::Time,
        }
    }

    fn run_ended(&mut self, run: TaskRun) {
        self.runs_under_way -= 1;
        let now = self.edges.clock.now();
        let (team, task, outcome, committed) = (run.team.clone(), run.task, run.outcome, run.committed.clone());
        self.timetable.finished(&team, task, now, outcome, run.urgency);
        if committed.commits > 0 && !matches!(outcome, Outcome::Done { is_unfinished: true, .. }) {
            self.timetable.rest(&team, now.plus(self.edges.settings.commit_every));
        }
        self.back_off(outcome, now);
        let failures = self.timetable.task_state(&team, task).map_or(0, |state| state.failures);
        if task == Task::Read(Stream::Activity) && committed.rows > 0 {
            // Activity may report changes of people and computers. The scan decides.
            self.timetable.want(&team, Task::Inventory, now);
            if committed.removals > 0 {
                self.timetable.want(&team, Task::Read(Stream::Connections), now);
            }
        }
        if self.timetable.task_state(&team, task).is_none() {
            // The team was removed during the run.
            return;
        }
        self.live.run_ended(run, failures, now, self.open_teams.size());
        self.show_tasks(&team);
    }

    /// If the service asks a team to wait, only this team waits. If it asks several teams in a row, all teams wait.
    fn back_off(&mut self, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Failed { not_before: Some(wait) } => {
                self.asked_to_wait += 1;
                if self.asked_to_wait >= ASKED_TO_WAIT_MAX {
                    tracing::warn!(seconds = wait.as_secs(), "the service asks one team after another to wait: all do");
                    self.timetable.pause(now.plus(wait));
                    self.asked_to_wait = 0;
                }
            }
            _ => self.asked_to_wait = 0,
        }
    }

    fn checked(&mut self, verified: Verified) {
        self.is_checking = false;
        self.checked_at = self.edges.clock.now();
        match &verified.first {
            Some(first) => tracing::error!(faults = verified.faults, first, "the archive does not check"),
            None => tracing::info!("the whole archive checks against its ledger"),
        }
        self.live.change(|shown| shown.verified = Some(verified));
    }

    fn reload(&mut self, (edges, schedule): (Edges, Schedule)) {
        let now = edges.clock.now();
        let named: BTreeSet<TeamId> = edges.settings.own(edges.settings.teams.clone()).into_iter().collect();
        let is_named = !edges.settings.teams.is_empty();
        let tasks = edges.tasks();
        self.timetable.reload(schedule.clone(), tasks.clone(), slots(&edges), now);
        self.live.change(|shown| {
            shown.teams.values_mut().for_each(|team| team.tasks.retain(|task, _| tasks.contains(task)));
        });
        self.live.set_schedule(schedule.clone());
        (self.checked_at, self.listed_next) = (now, Some(Duration::ZERO));
        (self.edges, self.schedule) = (Arc::new(edges), schedule);
        if is_named {
            for team in self.timetable.teams().difference(&named) {
                self.forget(team);
            }
            for team in &named {
                self.add_team(team, now);
            }
        }
        self.timetable.retry_refused(now);
        for team in self.timetable.teams() {
            self.show_tasks(&team);
        }
        tracing::info!("the configuration was read again and is in force");
    }

    /// Waits a moment for the running tasks to end, then abandons the others. The next process reads their uncommitted
    /// events again.
    async fn shut_down(mut self) {
        let mut grace = self.edges.clock.sleep(STOP_GRACE).fuse();
        while self.runs_under_way > 0 {
            futures::select_biased! {
                event = self.under_way.select_next_some() => {
                    self.runs_under_way -= usize::from(matches!(event, Event::RunEnded(_)));
                }
                () = grace => {
                    let runs = self.runs_under_way;
                    tracing::info!(runs, "given up in the middle: nothing is half committed");
                    return;
                }
            }
        }
    }
}

fn slots(edges: &Edges) -> usize {
    SLOTS_MIN.max(2 * edges.settings.concurrency)
}

async fn check(archive: Arc<Archive>, edges: Arc<Edges>) -> Verified {
    let options = VerifyOptions { grace: archive.grace(), ..VerifyOptions::default() };
    let verify = move || {
        let mut report = verify(archive.store().as_ref(), &options)?;
        lake::verify_tables(&archive, &mut report);
        Ok::<_, ArchiveError>(report)
    };
    let report = edges.workers.run(verify).await;
    let at = edges.clock.now();
    match report {
        Ok(report) => {
            let first = report.faults.first().map(|fault| format!("{} {}", fault.code.into_str(), fault.object));
            Verified { at, faults: report.faults.len(), first }
        }
        Err(error) => Verified { at, faults: 1, first: Some(error.to_string()) },
    }
}

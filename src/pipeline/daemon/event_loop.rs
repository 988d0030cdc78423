//! The daemon: visits teams as the timetable says, for years.
//!
//! One loop owns the timetable and starts visits; what it decides is in `schedule`, what a visit does in `visit`. It ends
//! when it is told to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use crate::api::{ApiError, EventSource};
use crate::archive::{Archive, VerifyOptions, verify};
use crate::config::Schedule;
use crate::model::{Instant, Stream, TeamId};

use crate::pipeline::commit::counts::Flushed;
use crate::pipeline::daemon::live::{Live, TaskLive, Verified};
use crate::pipeline::daemon::open_teams::{OPEN_TEAMS_BYTES_MAX, OpenTeams};
use crate::pipeline::daemon::task_run::{Edges, TaskRun, run_task};
use crate::pipeline::daemon::timetable::{Next, Outcome, Task, Timetable};
use crate::pipeline::team::budget::Budget;
use crate::pipeline::workers::Workers;

/// The loop comes round at least this often.
const ROUND_MAX: Duration = Duration::from_secs(1);
/// The service's list of teams is read so often, and after a failure so soon.
const LISTING_EVERY: Duration = Duration::from_secs(300);
const LISTING_RETRY: Duration = Duration::from_secs(15);
/// Told to stop, the daemon waits so long for visits to end by themselves.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// So many visits in a row that are asked to wait mean everybody.
const ASKED_TO_WAIT_MAX: u32 = 4;
/// Teams that are visited at once, at least.
const SLOTS_MIN: usize = 8;
/// After this many failures in a row a task is named in the log only at every doubling.
const FAILURES_LOGGED: u32 = 3;

/// What the daemon is told while it works.
pub enum Command {
    /// Another configuration, checked and whole.
    Reload(Box<(Edges, Schedule)>),
    /// The token is another one: what was refused is tried again.
    TokenChanged,
    /// End: visits may finish for a moment.
    Stop,
}

/// The daemon, ready to run.
pub struct Daemon {
    archive: Arc<Archive>,
    open_teams: Arc<OpenTeams>,
    edges: Arc<Edges>,
    schedule: Schedule,
    live: Arc<Live>,
    timetable: Timetable,
    runs: FuturesUnordered<BoxFuture<'static, TaskRun>>,
    listing: Option<BoxFuture<'static, Result<Vec<TeamId>, ApiError>>>,
    listed_next: Instant,
    checking: Option<BoxFuture<'static, Verified>>,
    checked_next: Option<Instant>,
    /// Teams known from the archive alone: the service has not listed them yet.
    assumed: BTreeSet<TeamId>,
    /// Visits in a row that the service has asked to wait.
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
            checked_next: schedule.verify.next_after(now),
            edges: Arc::new(edges),
            schedule,
            live,
            runs: FuturesUnordered::new(),
            listing: None,
            listed_next: now,
            checking: None,
            assumed: BTreeSet::new(),
            asked_to_wait: 0,
        }
    }

    /// Works until it is told to stop, or nobody is left to tell it.
    pub async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        self.assume_teams();
        loop {
            let wait = self.start_what_is_due();
            match self.next_event(&mut commands, wait).await {
                Event::RunEnded(run) => self.run_ended(*run),
                Event::Listed(listed) => self.listed(listed),
                Event::Checked(verified) => self.checked(verified),
                Event::Told(Some(Command::Reload(new))) => self.reload(*new),
                Event::Told(Some(Command::TokenChanged)) => {
                    tracing::info!("the token is another one: what was refused is tried again");
                    self.timetable.retry_refused(self.edges.clock.now());
                    self.listed_next = self.edges.clock.now();
                }
                Event::Told(Some(Command::Stop) | None) => break,
                Event::Time => {}
            }
        }
        self.wind_down().await;
    }

    /// Until the service has told which teams there are: those configured, or those of the archive; of these, the shard's own.
    fn assume_teams(&mut self) {
        let now = self.edges.clock.now();
        let mut teams = self.edges.settings.own(self.edges.settings.teams.clone());
        if self.edges.settings.teams.is_empty() {
            teams = self.edges.settings.own(self.archive.teams().unwrap_or_else(|error| {
                tracing::warn!(%error, "the archive does not say which teams it holds");
                Vec::new()
            }));
            self.assumed.extend(teams.iter().cloned());
        }
        for team in teams {
            self.take_in(&team, now);
        }
        if !self.edges.settings.teams.is_empty() {
            self.live.listed(None);
        }
    }

    fn take_in(&mut self, team: &TeamId, now: Instant) {
        self.timetable.add(team, now);
        self.show_standing(team);
    }

    fn start_what_is_due(&mut self) -> Duration {
        let now = self.edges.clock.now();
        self.live.beat(self.edges.clock.monotonic());
        if self.edges.settings.teams.is_empty() && self.listing.is_none() && self.listed_next <= now {
            let source: Arc<dyn EventSource> = self.edges.source.clone();
            self.listing = Some(async move { source.teams().await.map(|served| served.body) }.boxed());
        }
        if self.checking.is_none() && self.checked_next.is_some_and(|at| at <= now) {
            self.checking = Some(check(self.archive.clone(), self.edges.clone()).boxed());
        }
        loop {
            match self.timetable.next(now) {
                Next::Start(team, task) => self.start(team, task),
                Next::Wait(until) => return until.map_or(ROUND_MAX, |until| until.since(now).min(ROUND_MAX)),
            }
        }
    }

    fn start(&mut self, team: TeamId, task: Task) {
        self.show_standing(&team);
        let task_run = run_task(self.open_teams.clone(), self.edges.clone(), team.clone(), task);
        self.runs.push(match self.edges.workers {
            Workers::Inline => task_run.boxed(),
            Workers::Threads => {
                let handle = tokio::spawn(task_run);
                async move {
                    handle.await.unwrap_or_else(|error| {
                        tracing::error!(%team, task = task.as_str(), %error, "BUG: a visit broke");
                        TaskRun::broken(team, task, format!("BUG: the visit broke: {error}"))
                    })
                }
                .boxed()
            }
        });
    }

    async fn next_event(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>, wait: Duration) -> Event {
        let (mut never_listed, mut never_checked) =
            (futures::future::pending().boxed(), futures::future::pending().boxed());
        let listing = self.listing.as_mut().unwrap_or(&mut never_listed);
        let checking = self.checking.as_mut().unwrap_or(&mut never_checked);
        let mut time = self.edges.clock.sleep(wait).fuse();
        futures::select_biased! {
            told = commands.next() => Event::Told(told),
            run = self.runs.select_next_some() => Event::RunEnded(Box::new(run)),
            listed = listing.fuse() => Event::Listed(listed),
            checked = checking.fuse() => Event::Checked(checked),
            () = time => Event::Time,
        }
    }

    fn run_ended(&mut self, run: TaskRun) {
        let now = self.edges.clock.now();
        let TaskRun { team, task, outcome, urgency, status, gaps, opened_at, committed, error } = run;
        self.timetable.finished(&team, task, now, outcome, urgency);
        if committed.commits > 0 && !matches!(outcome, Outcome::Done { is_unfinished: true, .. }) {
            self.timetable.rest(&team, now.plus(self.edges.settings.commit_every));
        }
        self.heed(outcome, now);
        let failures = self.timetable.standing(&team, task).map_or(0, |standing| standing.failures);
        if task == Task::Read(Stream::Activity) && committed.rows > 0 {
            // Activity may tell of changes of people and computers: whether it does is decided there.
            self.timetable.want(&team, Task::Inventory, now);
            if committed.removals > 0 {
                self.timetable.want(&team, Task::Read(Stream::Connections), now);
            }
        }
        if self.timetable.standing(&team, task).is_none() {
            // It was taken out while the visit was under way.
            return;
        }
        self.live.change(|shown| {
            let live = shown.teams.entry(team.clone()).or_default();
            if status.is_some() {
                (live.status, live.seen_at, live.gaps) = (status, Some(now), gaps);
                live.opened_at = live.opened_at.or(opened_at);
            }
            if let Some(shown) = live.tasks.get_mut(&task) {
                let had_failed = shown.error.is_some();
                tell(&team, task, &committed, error.as_deref(), failures, had_failed);
                shown.counts.add(&committed);
                shown.done_at = if error.is_none() { Some(now) } else { shown.done_at };
                shown.error = error;
            }
            (shown.open_bytes, shown.open_teams) = self.open_teams.size();
        });
        self.show_standing(&team);
    }

    /// A team that is asked to wait waits by itself. When one after another is asked, all wait.
    fn heed(&mut self, outcome: Outcome, now: Instant) {
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

    fn show_standing(&self, team: &TeamId) {
        self.live.change(|shown| {
            let live = shown.teams.entry(team.clone()).or_default();
            for task in Task::ALL {
                if let Some(standing) = self.timetable.standing(team, task) {
                    let fresh = TaskLive { standing, done_at: None, error: None, counts: Default::default() };
                    live.tasks.entry(task).or_insert(fresh).standing = standing;
                }
            }
        });
    }

    fn listed(&mut self, listed: Result<Vec<TeamId>, ApiError>) {
        let now = self.edges.clock.now();
        self.listing = None;
        match listed {
            Ok(teams) => {
                let teams = self.edges.settings.own(teams);
                self.listed_next = now.plus(LISTING_EVERY);
                let gone: Vec<TeamId> = self.assumed.iter().filter(|team| !teams.contains(team)).cloned().collect();
                for team in gone {
                    tracing::warn!(%team, "the archive holds this team, and the token does not see it: it is not read");
                    self.forget(&team);
                }
                self.assumed.clear();
                let known = self.timetable.teams();
                for team in teams.iter().filter(|team| !known.contains(*team)) {
                    tracing::info!(%team, "a team to read");
                    self.take_in(team, now);
                }
                // Last, so that nobody takes teams that are not taken in yet for none.
                self.live.listed(None);
            }
            Err(error) => {
                tracing::warn!(%error, "the service does not list the teams");
                self.listed_next = now.plus(error.retry_after().unwrap_or_default().max(LISTING_RETRY));
                self.live.listed(Some(error.to_string()));
            }
        }
    }

    fn forget(&mut self, team: &TeamId) {
        self.timetable.remove(team);
        self.live.change(|shown| {
            for (task, live) in shown.teams.remove(team).into_iter().flat_map(|team| team.tasks) {
                shown.forgotten.entry(task).or_default().add(&live.counts);
            }
        });
    }

    fn checked(&mut self, verified: Verified) {
        self.checking = None;
        self.checked_next = self.schedule.verify.next_after(self.edges.clock.now());
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
        (self.checked_next, self.listed_next) = (schedule.verify.next_after(now), now);
        (self.edges, self.schedule) = (Arc::new(edges), schedule);
        if is_named {
            for team in self.timetable.teams().difference(&named) {
                self.forget(team);
            }
            for team in &named {
                self.take_in(team, now);
            }
        }
        self.timetable.retry_refused(now);
        for team in self.timetable.teams() {
            self.show_standing(&team);
        }
        tracing::info!("the configuration was read again and is in force");
    }

    /// Lets visits end by themselves for a moment; the others are given up. What they have read and not committed is read
    /// again by the next process.
    async fn wind_down(mut self) {
        let mut grace = self.edges.clock.sleep(STOP_GRACE).fuse();
        while !self.runs.is_empty() {
            futures::select_biased! {
                _ = self.runs.select_next_some() => {}
                () = grace => {
                    tracing::info!(visits = self.runs.len(), "given up in the middle: nothing is half committed");
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
    let report = edges.workers.run(move || verify(archive.store().as_ref(), &options)).await;
    let at = edges.clock.now();
    match report {
        Ok(report) => {
            let first = report.faults.first().map(|fault| format!("{} {}", fault.code.as_str(), fault.object));
            Verified { at, faults: report.faults.len(), first }
        }
        Err(error) => Verified { at, faults: 1, first: Some(error.to_string()) },
    }
}

/// One line for what is worth knowing: new events, a gap, a failure and its end.
fn tell(team: &TeamId, task: Task, committed: &Flushed, error: Option<&str>, failures: u32, had_failed: bool) {
    let task = task.as_str();
    if committed.commits > 0 && committed.rows + committed.rejects > 0 {
        let Flushed { rows: new, late, rejects: quarantined, .. } = committed;
        tracing::info!(%team, task, new, late, quarantined, "committed");
    }
    if committed.gaps > 0 {
        tracing::warn!(%team, task, gaps = committed.gaps, "a gap was recorded: `annals status` and `findings` name it");
    }
    match error {
        Some(error) if failures <= FAILURES_LOGGED || failures.is_power_of_two() => {
            tracing::warn!(%team, task, failures, error, "not done");
        }
        None if had_failed => tracing::info!(%team, task, "works again"),
        _ => {}
    }
}

//! What runs next, for any number of teams. Pure: time is an argument, chance is a seed.
//!
//! A task of a team is due at its cron moments, each shifted by an offset of its own, so that many teams do not start
//! together. What is late runs once. A team does one thing at a time. Of what is due the task goes first that has the
//! least time left until something is lost. Failing teams, teams with much to catch up on, and looks at people and
//! computers, which take long and can wait, use a part of the slots each, so that they hold up nobody's newest events.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::config::{Cron, Schedule};
use crate::model::{Digest, Instant, Stream, TeamId};
use crate::planted::{self, Bug};

use crate::pipeline::plan::urgency::{HORIZON_ASSUMED, Urgency};

/// Offsets are spread over the time between two moments of a schedule, but over no more than this.
pub const SPREAD_MAX: Duration = Duration::from_secs(600);
/// The waits after failures: the first, and the longest where nobody has to do anything, and where somebody has.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(1);
pub const BACKOFF_MAX: Duration = Duration::from_secs(120);
pub const SLOW_RETRY: Duration = Duration::from_secs(900);
/// A wait that the service asks for in a row of failures is taken so many times at most.
const ASKED_TIMES_MAX: u32 = 4;

/// So many failures in a row, whichever team's, mean that the service is away. When it is back, what waits after a failure is
/// tried at once: the newest events have waited long enough. No oftener than this.
const AWAY_FAILURES: u32 = 3;
const BACK_EVERY: Duration = Duration::from_secs(30);

/// What a team is visited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    Read(Stream),
    Inventory,
}

impl Task {
    pub const ALL: [Task; 4] =
        [Task::Read(Stream::Activity), Task::Read(Stream::Connections), Task::Read(Stream::Billing), Task::Inventory];

    pub const fn as_str(self) -> &'static str {
        match self {
            Task::Read(stream) => stream.as_str(),
            Task::Inventory => "inventory",
        }
    }

    pub const fn cron(self, schedule: &Schedule) -> &Cron {
        match self {
            Task::Read(Stream::Activity) => &schedule.activity,
            Task::Read(Stream::Connections) => &schedule.connections,
            Task::Read(Stream::Billing) => &schedule.billing,
            Task::Inventory => &schedule.inventory,
        }
    }
}

/// How a run ended, as far as the next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done {
        /// There is more to read than one run may take.
        is_unfinished: bool,
        /// The next run must not wait longer than this.
        within: Option<Duration>,
    },
    /// The same may work later by itself; the service may have said when.
    Failed { not_before: Option<Duration> },
    /// Another writer was ahead: the team is left to it for a while.
    Fenced,
    /// Somebody has to do something first: a token, a disk, a damaged file.
    Refused,
}

/// Which slots a task may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Newest,
    CatchUp,
    Inventory,
    Trial,
}

#[derive(Debug, Clone)]
struct Job {
    due: Instant,
    offset: Duration,
    started: Option<Instant>,
    failures: u32,
    is_refused: bool,
    is_unfinished: bool,
    /// Asked for while it ran.
    is_wanted: bool,
    urgency: Urgency,
}

impl Job {
    fn lane(&self, task: Task) -> Lane {
        match (self.failures, task, self.is_unfinished) {
            (1.., _, _) => Lane::Trial,
            (0, Task::Inventory, _) => Lane::Inventory,
            (0, Task::Read(_), true) => Lane::CatchUp,
            (0, Task::Read(_), false) => Lane::Newest,
        }
    }
}

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Start(TeamId, Task),
    /// Nothing before this moment, unless a run ends.
    Wait(Option<Instant>),
}

/// A task's standing, for showing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub due: Instant,
    pub is_running: bool,
    pub failures: u32,
    pub is_unfinished: bool,
}

/// Everything that is due some time.
#[derive(Debug)]
pub struct Timetable {
    schedule: Schedule,
    tasks: Vec<Task>,
    slots: usize,
    seed: u64,
    jobs: BTreeMap<(TeamId, Task), Job>,
    busy: BTreeMap<TeamId, Lane>,
    /// Teams that are not visited for now, and until when.
    resting: BTreeMap<TeamId, Instant>,
    /// The service asked everybody to wait.
    paused_until: Option<Instant>,
    /// Failures in a row, and when the service was last seen to be back.
    away: u32,
    back_at: Option<Instant>,
    seen: Option<Instant>,
}

impl Timetable {
    /// `slots`: teams that are visited at once.
    pub fn new(schedule: Schedule, tasks: Vec<Task>, slots: usize, seed: u64) -> Self {
        let (jobs, busy, resting) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let slots = slots.max(1);
        let (paused_until, back_at, seen) = (None, None, None);
        Self { schedule, tasks, slots, seed, jobs, busy, resting, paused_until, away: 0, back_at, seen }
    }

    /// Takes a team in: all of its tasks are due now. A team that is known stays as it is.
    pub fn add(&mut self, team: &TeamId, now: Instant) {
        for task in self.tasks.clone() {
            let offset = offset(self.seed, team, task, &self.schedule, now);
            self.jobs.entry((team.clone(), task)).or_insert(Job {
                due: now,
                offset,
                started: None,
                failures: 0,
                is_refused: false,
                is_unfinished: false,
                is_wanted: false,
                urgency: first_urgency(task, now),
            });
        }
    }

    /// Forgets a team. A run under way ends unheard.
    pub fn remove(&mut self, team: &TeamId) {
        self.jobs.retain(|(of, _), _| of != team);
    }

    pub fn teams(&self) -> BTreeSet<TeamId> {
        self.jobs.keys().map(|(team, _)| team.clone()).collect()
    }

    pub fn is_idle(&self) -> bool {
        self.busy.is_empty()
    }

    /// What to do at `now`; a start is taken for done.
    pub fn next(&mut self, now: Instant) -> Next {
        self.notice_clock(now);
        if let Some(until) = self.paused_until.filter(|until| now < *until) {
            return Next::Wait(Some(until));
        }
        self.resting.retain(|_, until| now < *until);
        let free = self.free_lanes();
        let due = self.jobs.iter().filter(|((team, _), job)| job.due <= now && !self.busy.contains_key(team));
        let due = due.filter(|((team, _), _)| !self.resting.contains_key(team));
        let first = due
            .filter(|((_, task), job)| free.contains(&job.lane(*task)))
            .min_by_key(|(key, job)| (job.urgency.rank(now), job.due, *key))
            .map(|((team, task), job)| (team.clone(), *task, job.lane(*task)));
        if let Some((team, task, lane)) = first {
            self.busy.insert(team.clone(), lane);
            let job = self.jobs.get_mut(&(team.clone(), task)).expect("BUG: it was just found");
            (job.started, job.is_wanted) = (Some(now), false);
            return Next::Start(team, task);
        }
        let later = self.jobs.iter().filter(|((team, _), _)| !self.busy.contains_key(team));
        let asked = |team| self.resting.get(team).copied().unwrap_or(now);
        Next::Wait(later.map(|((team, _), job)| job.due.max(asked(team))).filter(|due| now < *due).min())
    }

    /// Takes note of a run's end.
    pub fn finished(&mut self, team: &TeamId, task: Task, now: Instant, outcome: Outcome, urgency: Option<Urgency>) {
        self.busy.remove(team);
        let (schedule, seed) = (&self.schedule, self.seed);
        let Some(job) = self.jobs.get_mut(&(team.clone(), task)) else { return };
        let started = job.started.take().unwrap_or(now);
        job.urgency = urgency.unwrap_or_else(|| match (task, outcome) {
            (Task::Inventory, Outcome::Done { .. }) => first_urgency(task, now),
            _ => job.urgency,
        });
        match outcome {
            Outcome::Done { is_unfinished, within } => {
                (job.failures, job.is_refused, job.is_unfinished) = (0, false, is_unfinished);
                let soonest = within.map_or(Instant::LATEST, |within| now.plus(within));
                job.due = next_due(task.cron(schedule), job.offset, started).min(soonest);
                if is_unfinished || job.is_wanted {
                    job.due = job.due.min(now);
                }
            }
            Outcome::Failed { not_before } => {
                job.failures = job.failures.saturating_add(1);
                job.is_refused = false;
                let wait = backoff(job.failures, BACKOFF_MAX, seed ^ hash(team, task));
                // While the service asks for a wait everybody waits: who is asked again and again asks more seldom.
                let asked = not_before.unwrap_or_default() * job.failures.min(ASKED_TIMES_MAX);
                job.due = now.plus(wait.max(asked));
                if let Some(asked) = not_before.filter(|asked| !asked.is_zero()) {
                    // Whatever the team is visited for next asks the same service.
                    self.resting.insert(team.clone(), now.plus(asked));
                }
            }
            Outcome::Fenced => {
                (job.failures, job.is_refused) = (job.failures.saturating_add(1), false);
                job.due = now.plus(backoff(job.failures, BACKOFF_MAX, seed ^ hash(team, task)));
                // Whatever the team is visited for next would write into the same ledger.
                self.resting.insert(team.clone(), job.due);
            }
            Outcome::Refused => {
                job.failures = job.failures.saturating_add(1);
                job.is_refused = true;
                job.due = now.plus(backoff(job.failures, SLOW_RETRY, seed ^ hash(team, task)));
            }
        }
        job.is_wanted = false;
        match outcome {
            Outcome::Failed { .. } => self.away = self.away.saturating_add(1),
            Outcome::Done { .. } if std::mem::take(&mut self.away) >= AWAY_FAILURES => self.back(now),
            Outcome::Done { .. } | Outcome::Fenced | Outcome::Refused => {}
        }
    }

    /// The service answers again.
    fn back(&mut self, now: Instant) {
        if self.back_at.is_some_and(|at| now < at.plus(BACK_EVERY)) {
            return;
        }
        self.back_at = Some(now);
        for job in self.jobs.values_mut().filter(|job| job.failures > 0 && !job.is_refused) {
            job.due = job.due.min(now);
        }
    }

    /// Makes a task due now: something happened that it should see. What waits after a failure goes on waiting.
    pub fn want(&mut self, team: &TeamId, task: Task, now: Instant) {
        if let Some(job) = self.jobs.get_mut(&(team.clone(), task)) {
            match (job.started, job.failures) {
                (Some(_), _) => job.is_wanted = true,
                (None, 0) => job.due = job.due.min(now),
                (None, 1..) => {}
            }
        }
    }

    /// The team is not visited before `until`.
    pub fn rest(&mut self, team: &TeamId, until: Instant) {
        let held = self.resting.entry(team.clone()).or_insert(until);
        *held = until.max(*held);
    }

    /// What was refused is tried again now: the token is another one.
    pub fn retry_refused(&mut self, now: Instant) {
        for job in self.jobs.values_mut().filter(|job| job.is_refused) {
            (job.due, job.failures) = (job.due.min(now), job.failures.min(1));
        }
    }

    /// Nothing starts before `until`: the service asked for it.
    pub fn pause(&mut self, until: Instant) {
        self.paused_until = Some(self.paused_until.map_or(until, |held| held.max(until)));
    }

    /// Another schedule is in force from now on.
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

    pub fn standing(&self, team: &TeamId, task: Task) -> Option<Standing> {
        let job = self.jobs.get(&(team.clone(), task))?;
        let (due, failures, is_unfinished) = (job.due, job.failures, job.is_unfinished);
        Some(Standing { due, is_running: job.started.is_some(), failures, is_unfinished })
    }

    /// A clock that was set back must not let a schedule stand still until it has caught up.
    fn notice_clock(&mut self, now: Instant) {
        if self.seen.is_some_and(|seen| now < seen) {
            (self.paused_until, self.back_at) = (None, None);
            self.resting.clear();
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
        let mut free = vec![Lane::Newest];
        free.extend((used(Lane::CatchUp) < (self.slots / 2).max(1)).then_some(Lane::CatchUp));
        for lane in [Lane::Inventory, Lane::Trial] {
            free.extend((used(lane) < (self.slots / 4).max(1)).then_some(lane));
        }
        free
    }
}

/// A stream that was never read goes before what is well; people and computers, of which nothing is lost by waiting, after.
fn first_urgency(task: Task, now: Instant) -> Urgency {
    match task {
        Task::Read(_) => Urgency::default(),
        Task::Inventory => Urgency { loss_at: Some(now.plus(HORIZON_ASSUMED)), horizon: HORIZON_ASSUMED },
    }
}

/// The first moment of a schedule, shifted, after `after`.
fn next_due(cron: &Cron, offset: Duration, after: Instant) -> Instant {
    cron.next_after(after.minus(offset)).map_or(Instant::LATEST, |next| next.plus(offset))
}

/// Where between two moments of its schedule a team's task has its place: the same as long as the process lives.
fn offset(seed: u64, team: &TeamId, task: Task, schedule: &Schedule, now: Instant) -> Duration {
    let spread = task.cron(schedule).interval(now).min(SPREAD_MAX);
    let nanos = u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX).max(1);
    Duration::from_nanos((seed ^ hash(team, task)) % nanos)
}

fn hash(team: &TeamId, task: Task) -> u64 {
    let digest = Digest::with_domain("annals schedule\n", &[team.as_str().as_bytes(), b"\n", task.as_str().as_bytes()]);
    u64::from_le_bytes(digest.0[..8].try_into().expect("BUG: a digest has more than 8 bytes"))
}

/// The wait after so many failures in a row: twice as long each time, less up to a quarter, so that those who failed
/// together do not come back together.
fn backoff(failures: u32, longest: Duration, chance: u64) -> Duration {
    if planted::is(Bug::HotLoop) {
        return Duration::ZERO;
    }
    let whole = BACKOFF_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(longest);
    let quarter = u64::try_from((whole / 4).as_nanos()).unwrap_or(u64::MAX).max(1);
    whole - Duration::from_nanos(chance.rotate_left(failures % 64) % quarter)
}

#[cfg(test)]
mod tests;

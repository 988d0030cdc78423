//! A task of a team: when it is due, and how the end of a run changes that. Pure.

use std::time::Duration;

use crate::config::{Cron, Schedule};
use crate::model::{Digest, Instant, Stream, TeamId};
use crate::pipeline::{HORIZON_ASSUMED, Urgency};
use crate::planted::{self, Bug};

/// Offsets are spread over the time between two moments of a schedule, but over no more than this.
pub const SPREAD_MAX: Duration = Duration::from_secs(600);
/// The first wait after a failure.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// The longest wait after failures that end by themselves.
pub const BACKOFF_MAX: Duration = Duration::from_secs(120);
/// The longest wait after a failure that a person must end.
pub const SLOW_RETRY: Duration = Duration::from_secs(900);
/// The wait that the service asks for is multiplied by the failures in a row, up to this.
const ASKED_TIMES_MAX: u32 = 4;

/// A kind of work that the daemon does for a team.
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

/// How a run ended, as far as the next run depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done {
        /// There is more to read than one run may take.
        is_unfinished: bool,
        /// The next run must not wait longer than this.
        within: Option<Duration>,
    },
    /// The same work may succeed later by itself. The service may have said when.
    Failed { not_before: Option<Duration> },
    /// Another writer was ahead: this process leaves the team to it for a while.
    Fenced,
    /// A person must act first: a token, a disk, a damaged file.
    Refused,
}

/// Which slots a task may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Newest,
    CatchUp,
    Inventory,
    Retry,
}

#[derive(Debug, Clone)]
pub struct Job {
    pub due: Instant,
    /// Added to each moment of the schedule.
    pub offset: Duration,
    pub started: Option<Instant>,
    pub failures: u32,
    pub is_refused: bool,
    pub is_unfinished: bool,
    /// Another run was asked for during this one.
    pub is_wanted: bool,
    pub urgency: Urgency,
}

impl Job {
    /// A job of a new team: due now.
    pub fn new(task: Task, offset: Duration, now: Instant) -> Self {
        Self {
            due: now,
            offset,
            started: None,
            failures: 0,
            is_refused: false,
            is_unfinished: false,
            is_wanted: false,
            urgency: first_urgency(task, now),
        }
    }

    pub fn lane(&self, task: Task) -> Lane {
        match (self.failures, task, self.is_unfinished) {
            (1.., _, _) => Lane::Retry,
            (0, Task::Inventory, _) => Lane::Inventory,
            (0, Task::Read(_), true) => Lane::CatchUp,
            (0, Task::Read(_), false) => Lane::Newest,
        }
    }

    /// Takes notice of a run's end. `chance` spreads the waits of many jobs.
    pub fn finished(
        &mut self,
        task: Task,
        now: Instant,
        outcome: Outcome,
        urgency: Option<Urgency>,
        schedule: &Schedule,
        chance: u64,
    ) {
        let started = self.started.take().unwrap_or(now);
        self.urgency = urgency.unwrap_or_else(|| match (task, outcome) {
            (Task::Inventory, Outcome::Done { .. }) => first_urgency(task, now),
            _ => self.urgency,
        });
        let failures = self.failures.saturating_add(1);
        let after = |longest: Duration| now.plus(backoff(failures, longest, chance));
        (self.failures, self.is_refused) = (failures, outcome == Outcome::Refused);
        match outcome {
            Outcome::Done { is_unfinished, within } => {
                (self.failures, self.is_unfinished) = (0, is_unfinished);
                let soonest = within.map_or(Instant::LATEST, |within| now.plus(within));
                self.due = next_due(task.cron(schedule), self.offset, started).min(soonest);
                if is_unfinished || self.is_wanted {
                    self.due = self.due.min(now);
                }
            }
            Outcome::Failed { not_before } => {
                // A job that the service asks to wait again and again asks more seldom.
                let asked = not_before.unwrap_or_default() * failures.min(ASKED_TIMES_MAX);
                self.due = after(BACKOFF_MAX).max(now.plus(asked));
            }
            Outcome::Fenced => self.due = after(BACKOFF_MAX),
            Outcome::Refused => self.due = after(SLOW_RETRY),
        }
        self.is_wanted = false;
    }
}

/// A stream that was never read runs before streams without pressure. The inventory runs after it: waiting loses nothing of it.
fn first_urgency(task: Task, now: Instant) -> Urgency {
    match task {
        Task::Read(_) => Urgency::default(),
        Task::Inventory => Urgency { loss_at: Some(now.plus(HORIZON_ASSUMED)), horizon: HORIZON_ASSUMED },
    }
}

/// The first moment of a schedule after `after`, shifted by `offset`.
pub fn next_due(cron: &Cron, offset: Duration, after: Instant) -> Instant {
    cron.next_after(after.minus(offset)).map_or(Instant::LATEST, |next| next.plus(offset))
}

/// Where between two moments of its schedule a team's task starts. It is the same as long as the process lives.
pub fn offset(seed: u64, team: &TeamId, task: Task, schedule: &Schedule, now: Instant) -> Duration {
    let spread = task.cron(schedule).interval(now).min(SPREAD_MAX);
    let nanos = u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX).max(1);
    Duration::from_nanos((seed ^ hash(team, task)) % nanos)
}

pub fn hash(team: &TeamId, task: Task) -> u64 {
    let digest = Digest::with_domain("annals schedule\n", &[team.as_str().as_bytes(), b"\n", task.as_str().as_bytes()]);
    u64::from_le_bytes(digest.0[..8].try_into().expect("BUG: a digest has more than 8 bytes"))
}

/// The wait after so many failures in a row: it doubles each time, less up to a quarter, so that jobs that failed together do
/// not return together.
fn backoff(failures: u32, longest: Duration, chance: u64) -> Duration {
    if planted::is(Bug::HotLoop) {
        return Duration::ZERO;
    }
    let whole = BACKOFF_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(longest);
    let quarter = u64::try_from((whole / 4).as_nanos()).unwrap_or(u64::MAX).max(1);
    whole - Duration::from_nanos(chance.rotate_left(failures % 64) % quarter)
}

//! A task of a team: the time at which it is due, and the effect of a run on that time. Pure.

use std::time::Duration;

use crate::config::{Cron, Schedule};
use crate::model::{Digest, Instant, Stream, TeamId};
use crate::pipeline::{InventorySettings, SPAN_ASSUMED, ScanMode, Settings, Urgency};
use crate::planted::{self, Bug};

/// Offsets are spread over the time between two moments of a schedule, but at most over this time.
pub const SPREAD_MAX: Duration = Duration::from_secs(600);
/// The first wait after a failure.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// The longest wait after temporary failures.
pub const BACKOFF_MAX: Duration = Duration::from_secs(120);
/// The longest wait after a failure that a person must resolve.
pub const SLOW_RETRY: Duration = Duration::from_secs(900);
/// The wait that the service asks for is multiplied by the consecutive failures, up to this factor.
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

    /// The tasks of each team.
    pub fn all_of(settings: &Settings) -> Vec<Task> {
        let inventory = (settings.inventory.scan != ScanMode::Never).then_some(Task::Inventory);
        settings.streams.iter().map(|stream| Task::Read(*stream)).chain(inventory).collect()
    }

    /// The settings of a run, which reads one stream or only the inventory.
    pub fn settings(self, all: &Settings) -> Settings {
        match self {
            Task::Read(stream) => {
                let inventory = InventorySettings { scan: ScanMode::Never, ..all.inventory };
                Settings { streams: vec![stream], inventory, ..all.clone() }
            }
            Task::Inventory => Settings { streams: Vec::new(), ..all.clone() },
        }
    }
}

/// The end of a run, as far as the next run depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// `is_unfinished`: there is more to read than one run may read.
    Done { is_unfinished: bool },
    /// A retry may succeed without help. The service may have given a time.
    Failed { not_before: Option<Duration> },
    /// The archive cannot be written now: its disk is full, or another command writes the team. The service can answer, so a retry is
    /// never later than the next scheduled run.
    Unwritten,
    /// Another writer committed first: this process pauses the team.
    Fenced,
    /// A person must act first: on the token, the disk, or a damaged file.
    Refused,
}

/// The slots that a task may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Newest,
    CatchUp,
    Inventory,
    Retry,
}

/// When a task of a team is due, and the state of its last run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub due: Instant,
    /// Added to each moment of the schedule.
    pub offset: Duration,
    pub started: Option<Instant>,
    pub failures: u32,
    pub is_refused: bool,
    pub is_unfinished: bool,
    /// Another run was requested during this one.
    pub is_due_again: bool,
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
            is_due_again: false,
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

    /// Notes the end of a run. `chance` spreads the waits of many jobs.
    pub fn finished(
        &mut self,
        task: Task,
        now: Instant,
        outcome: RunOutcome,
        urgency: Option<Urgency>,
        schedule: &Schedule,
        chance: u64,
    ) {
        // The clock can be set back during a run: then its start is in the future.
        let started = self.started.take().unwrap_or(now).min(now);
        self.urgency = urgency.unwrap_or_else(|| match (task, outcome) {
            (Task::Inventory, RunOutcome::Done { .. }) => first_urgency(task, now),
            _ => self.urgency,
        });
        let failures = self.failures.saturating_add(1);
        let after = |longest: Duration| now.plus(backoff(failures, longest, chance));
        (self.failures, self.is_refused) = (failures, outcome == RunOutcome::Refused);
        match outcome {
            RunOutcome::Done { is_unfinished } => {
                (self.failures, self.is_unfinished) = (0, is_unfinished);
                self.due = next_due(task.cron(schedule), self.offset, started);
                if let (Task::Read(Stream::Billing), Some(within)) = (task, self.urgency.billing_within()) {
                    self.due = self.due.min(now.plus(within));
                }
                if is_unfinished || self.is_due_again {
                    self.due = self.due.min(now);
                }
            }
            RunOutcome::Failed { not_before } => {
                // The delay of a job grows if the service asks it to wait repeatedly.
                let asked = not_before.unwrap_or_default() * failures.min(ASKED_TIMES_MAX);
                self.due = after(BACKOFF_MAX).max(now.plus(asked));
            }
            RunOutcome::Unwritten => {
                self.due = after(BACKOFF_MAX).min(next_due(task.cron(schedule), self.offset, now));
            }
            RunOutcome::Fenced => self.due = after(BACKOFF_MAX),
            RunOutcome::Refused => self.due = after(SLOW_RETRY),
        }
        self.is_due_again = false;
    }
}

/// A stream that was never read runs before streams without urgency. The inventory runs after it: a delay loses none of
/// it.
fn first_urgency(task: Task, now: Instant) -> Urgency {
    match task {
        Task::Read(_) => Urgency::default(),
        Task::Inventory => Urgency { loss_at: Some(now.plus(SPAN_ASSUMED)), span: None },
    }
}

/// The first moment of a schedule after `after`, shifted by `offset`.
pub fn next_due(cron: &Cron, offset: Duration, after: Instant) -> Instant {
    cron.next_after(after.minus(offset)).map_or(Instant::LATEST, |next| next.plus(offset))
}

/// The time between two moments of its schedule at which a team's task starts. It stays the same for the life of the
/// process.
pub fn offset(seed: u64, team: &TeamId, task: Task, schedule: &Schedule, now: Instant) -> Duration {
    let spread = task.cron(schedule).interval(now).min(SPREAD_MAX);
    let nanos = u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX).max(1);
    Duration::from_nanos((seed ^ hash(team, task)) % nanos)
}

pub fn hash(team: &TeamId, task: Task) -> u64 {
    let digest = Digest::with_domain("annals schedule\n", &[team.as_str().as_bytes(), b"\n", task.as_str().as_bytes()]);
    u64::from_le_bytes(digest.0[..8].try_into().expect("BUG: a digest has more than 8 bytes"))
}

/// The wait after this number of consecutive failures. It doubles each time, minus up to a quarter, so jobs that failed
/// together do not retry together.
fn backoff(failures: u32, longest: Duration, chance: u64) -> Duration {
    if planted::is(Bug::RetriesWithoutDelay) {
        return Duration::ZERO;
    }
    let whole = BACKOFF_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(longest);
    let quarter = u64::try_from((whole / 4).as_nanos()).unwrap_or(u64::MAX).max(1);
    whole - Duration::from_nanos(chance.rotate_left(failures % 64) % quarter)
}

//! Draws a world from a seed: its length, its teams, its faults and their times.

use std::collections::BTreeSet;
use std::time::Duration;

use annals::config::{Cron, Partition, Schedule};
use annals::model::{GRACE_LOCAL, GRACE_MIN, Privacy, Stream};
use annals::pipeline::Settings;

use super::behaviour::{Behaviour, Bound, Dates, Edge, More, Next, Order};
use super::erasure::{self, PlannedOrder};
use super::fault_times;
use super::faults::Fault;
use super::privacy;
use super::random::Draw;
use super::retention::{self, PlannedHold};

pub const MINUTE: i64 = 60;
pub const HOUR: i64 = 3_600;
pub const DAY: i64 = 86_400;
/// The quiet time after the last fault.
pub const QUIET: i64 = 144 * HOUR;
/// 2026-09-20T00:00:00Z
const FIRST_DAY: i64 = 1_789_862_400;
/// 2027-01-06T00:00:00Z
const YEAR_IS_SEALED: i64 = 1_799_193_600;
/// The shortest life of a world that seals a year. It begins in the November before.
const YEARS_END_DAYS: i64 = 44;

/// A fault that lasts for some time.
#[derive(Debug, Clone)]
pub struct Spell {
    pub fault: Fault,
    /// `None`: every team.
    pub team: Option<usize>,
    pub stream: Option<Stream>,
    /// Seconds since the epoch.
    pub from: i64,
    pub until: i64,
    /// How many in a hundred requests or operations fail.
    pub percent: u64,
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It receives the order to stop.
    Stopped,
    /// Its task is dropped at its current wait.
    Killed,
    /// Power is lost in the store's next operation of this kind, after this many; unsynced data is torn.
    PowerLost { verb: Deadly, after: u64, is_torn: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadly {
    Any,
    Append,
    Remove,
    /// Any operation on a snapshot.
    Snapshot,
}

#[derive(Debug, Clone, Copy)]
pub struct ProcessPlan {
    pub until: i64,
    pub end: End,
    pub fault: Option<Fault>,
    /// Seconds until the next process starts.
    pub down: i64,
}

pub struct Plan {
    pub seed: u64,
    pub start: i64,
    /// From this moment on, no fault begins and nothing happens in the teams.
    pub calm_from: i64,
    pub end: i64,
    pub poll: i64,
    pub schedule: Schedule,
    /// The settings, except those that change with time: see [`Plan::settings_at`].
    pub settings: Settings,
    /// How months are sealed in each half of the world's life. A running process keeps its setting.
    partitions: [Partition; 2],
    /// What each half of the world's life keeps of the texts.
    pub policies: [Privacy; 2],
    pub teams: usize,
    pub plan_span: Option<i64>,
    /// The service never had `history/devices`.
    pub is_old: bool,
    pub behaviour: [Behaviour; 2],
    pub behaviour_change: i64,
    pub faults: BTreeSet<Fault>,
    pub spells: Vec<Spell>,
    pub lives: Vec<ProcessPlan>,
    pub clock_steps: Vec<(i64, i64)>,
    pub pollers: Vec<i64>,
    /// When the writer next stalls, and for how many seconds.
    pub stalls: Vec<(i64, i64)>,
    /// When a reader begins, and how many seconds it takes.
    pub readers: Vec<(i64, i64)>,
    /// How long the store keeps a file that no line names.
    pub grace: Duration,
    /// When the daemon gets a new token.
    pub rotations: Vec<i64>,
    /// How many ledger lines are between two snapshots.
    pub snapshot_lines: u64,
    pub hold: Option<PlannedHold>,
    pub order: Option<PlannedOrder>,
}

impl Plan {
    /// A world of `days`, quiet days included. `only` replaces the faults that the seed would draw.
    pub fn of(seed: u64, days: i64, only: Option<&[Fault]>) -> Self {
        let mut draw = Draw::of(seed, "plan");
        let after = draw.between(0, 40 * DAY);
        let days = if sees_years_end(seed) { days.max(YEARS_END_DAYS) } else { days };
        let start = match sees_years_end(seed) {
            true => YEAR_IS_SEALED + after / 20 - days * DAY,
            false if retention::has_policy(seed) => retention::start(seed),
            false => FIRST_DAY + after,
        };
        let end = start + days * DAY;
        let calm_from = end - QUIET - DAY;
        let poll = draw.pick(&[5, 15, 30, 60, 60, 60, 60, 120, 120, 240, 240, 240]) * MINUTE;
        let mut plan = Self {
            seed,
            start,
            calm_from,
            end,
            poll,
            schedule: schedule(poll),
            settings: Settings { concurrency: draw.count(1, 5), ..Settings::default() },
            partitions: partitions(seed),
            policies: privacy::policies(seed),
            teams: draw.count(1, 4),
            plan_span: draw.pick(&[None, Some(7 * DAY), Some(14 * DAY), Some(90 * DAY)]),
            is_old: false,
            behaviour: [Behaviour::default(), Behaviour::default()],
            behaviour_change: draw.between(start, calm_from),
            faults: faults(seed, &mut draw),
            spells: Vec::new(),
            lives: Vec::new(),
            clock_steps: Vec::new(),
            pollers: Vec::new(),
            stalls: Vec::new(),
            readers: Vec::new(),
            grace: Draw::of(seed, "grace").pick(&[GRACE_MIN, GRACE_LOCAL]),
            rotations: Vec::new(),
            snapshot_lines: Draw::of(seed, "snapshots").pick(&[1, 2, 3, 5, 8, 13, 40]),
            hold: None,
            order: None,
        };
        if let Some(only) = only {
            plan.faults = only.iter().copied().collect();
        }
        for fault in plan.faults.clone() {
            plan.habit(fault);
            fault_times::draw(&mut plan, fault);
        }
        retention::plan_hold(&mut plan);
        erasure::plan_order(&mut plan);
        plan.lives.sort_by_key(|life| life.until);
        plan.clock_steps.sort_unstable();
        plan
    }

    /// Half of the worlds with a second writer have no locks, as a bucket has none: the append alone fences the writers.
    pub fn is_without_locks(&self) -> bool {
        let of_writers = [Fault::SecondPoller, Fault::Stalled, Fault::SlowReader];
        self.seed % 2 == 1 && of_writers.into_iter().any(|fault| self.has(fault))
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    pub fn is_calm(&self) -> bool {
        self.faults.is_empty()
    }

    pub fn behaviour_at(&self, now: i64) -> &Behaviour {
        &self.behaviour[usize::from(now >= self.behaviour_change)]
    }

    pub fn settings_at(&self, now: i64) -> Settings {
        let half = usize::from(now >= self.behaviour_change);
        Settings { partition: self.partitions[half], privacy: self.policies[half], ..self.settings.clone() }
    }

    /// A time for a fault that lasts from `shortest` to `longest` seconds.
    pub fn stretch(&self, draw: &mut Draw, shortest: i64, longest: i64) -> (i64, i64) {
        let length = draw.between(shortest, longest + 1).min((self.calm_from - self.start) / 2);
        let from = draw.between(self.start + 2 * HOUR, self.calm_from - length);
        (from, from + length)
    }

    /// The service's behaviour, in one or both halves of its life.
    fn habit(&mut self, fault: Fault) {
        let mut draw = Draw::of(self.seed, fault.id());
        let halves = draw.pick(&[0..2, 0..2, 0..1, 1..2]);
        let (bounds, sizes) = (Bound::all().collect::<Vec<_>>(), [2, 3, 5, 9, 17, 100]);
        let is_dense = self.has(Fault::DenseSecond);
        for behaviour in &mut self.behaviour[halves] {
            match fault {
                Fault::HasMoreFalse => behaviour.more = draw.pick(&[More::Always(false), More::Absent, More::Null]),
                Fault::HasMoreTrue => behaviour.more = More::Always(true),
                Fault::NextOffset => {
                    let lies = [Next::Stuck, Next::Backwards, Next::Null, Next::Zero, Next::Absent, Next::Absurd];
                    behaviour.next = draw.pick(&lies);
                }
                Fault::SilentCap => behaviour.cap = Some(if is_dense { 100 } else { draw.pick(&sizes) }),
                Fault::LimitRefused => behaviour.limit_max = draw.pick(&[1_000, 500, 100]),
                Fault::Unsorted => behaviour.order = draw.pick(&[Order::NewestFirst, Order::Scattered]),
                Fault::Bounds => (behaviour.start, behaviour.stop) = (draw.pick(&bounds), draw.pick(&bounds)),
                Fault::StartExclusive => behaviour.start = Bound { edge: Edge::Exact, inclusive: false },
                Fault::Skew => behaviour.dates = draw.pick(&[Dates::Off(300), Dates::Off(-300), Dates::Absent]),
                _ => {}
            }
        }
    }
}

/// One world in 32 lives until a year is sealed.
fn sees_years_end(seed: u64) -> bool {
    seed % 32 == 5
}

/// Half of the worlds seal whole months. The others seal day by day, always or for half of the time.
fn partitions(seed: u64) -> [Partition; 2] {
    let (month, day) = (Partition::Month, Partition::Day);
    Draw::of(seed, "partition").pick(&[[month; 2], [month; 2], [month; 2], [day; 2], [day, month], [month, day]])
}

/// One world in eight has no faults.
fn faults(seed: u64, draw: &mut Draw) -> BTreeSet<Fault> {
    let drawn = Fault::drawn();
    let count = if draw.below(8) == 0 { 0 } else { draw.count(1, 9) };
    let mut faults: BTreeSet<Fault> = (0..count).map(|_| draw.pick(&drawn)).collect();
    let mut draw = Draw::of(seed, "computers");
    // `Date` and an event's time decide whether a reading came before a removal, so both must come from one clock.
    let is_skewed = faults.contains(&Fault::Skew);
    let of_computers = Fault::OF_COMPUTERS.into_iter().filter(|_| count > 0 && draw.below(6) == 0 && !is_skewed);
    faults.extend(of_computers);
    let apart = [
        ("stalls", Fault::Stalled, 5),
        ("slow readers", Fault::SlowReader, 5),
        ("views", Fault::ViewFails, 5),
        ("large events", Fault::LargeEvents, 10),
    ];
    for (apart, fault, one_in) in apart {
        faults.extend((count > 0 && Draw::of(seed, apart).below(one_in) == 0).then_some(fault));
    }
    faults
}

fn schedule(poll: i64) -> Schedule {
    let cron = |seconds: i64| -> Cron {
        let text = match seconds {
            ..=HOUR if seconds < HOUR => format!("*/{} * * * *", seconds / MINUTE),
            HOUR => "7 * * * *".to_owned(),
            _ => format!("7 */{} * * *", seconds / HOUR),
        };
        text.parse().unwrap()
    };
    Schedule {
        connections: cron(poll),
        activity: cron((2 * poll).min(HOUR)),
        billing: cron(2 * poll.max(30 * MINUTE)),
        inventory: "0 3 * * *".parse().unwrap(),
        verify: "0 4 * * SUN".parse().unwrap(),
        reports: "0 0 1 1 *".parse().unwrap(),
        retention: "40 3 * * *".parse().unwrap(),
    }
}

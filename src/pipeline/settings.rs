//! The checked settings of a round, from the configuration.

use std::sync::Arc;
use std::time::Duration;

use crate::api::PAGE_EVENTS_MAX;
use crate::archive::{WindowRecord, WindowState};
use crate::config::{Cron, Partition};
use crate::model::{Instant, Privacy, Range, Shard, Stream, TeamId, TeamRetention, WindowGrid};

/// The number of events that triggers a commit. Waiting events take most of a backfill's memory. This limit and the next ones
/// count a large event as several events (`RawEvent::size`).
pub const COMMIT_EVENTS_MAX: usize = 24_000;
/// The number of events that triggers a commit if their windows were read completely.
pub const COMMIT_EVENTS_MIN: usize = 16_000;
/// The number of events that triggers a commit even if windows were read only in part.
pub const HELD_EVENTS_MAX: usize = 36_000;
/// The number of changed windows that triggers a commit. A ledger line lists them all, and a line has a limit.
pub const COMMIT_WINDOWS_MAX: usize = 20_000;
/// The longest time that an event waits for its commit.
pub const COMMIT_DELAY_SECONDS_MAX: u64 = 30;
/// The most events that a reading collects before it sends them.
pub const READ_EVENTS_MAX: usize = 6_000;
/// The same for a re-scan, which has wide padding. Annals does not compare a part that was cut off with the archive.
pub const RESCAN_EVENTS_MAX: usize = 12_000;
/// A reading cuts its walk after this number of events. The page that reaches it still belongs to the reading.
pub const WALK_EVENTS_MAX: usize = READ_EVENTS_MAX - PAGE_EVENTS_MAX as usize;
/// The same for a re-scan.
pub const RESCAN_WALK_EVENTS_MAX: usize = RESCAN_EVENTS_MAX - PAGE_EVENTS_MAX as usize;
/// The target size of a span.
pub const SPAN_EVENTS_TARGET: u64 = 3_000;
/// The start of a backfill if the team does not show its plan's span: this long ago.
pub const BACKFILL_DAYS_DEFAULT: u64 = 30;
/// The limit of the learned lag.
pub const LAG_SECONDS_MAX: u64 = 6 * 3600;

/// When the inventory is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScanMode {
    #[default]
    Never,
    /// Once a day, and when activity reports a change.
    WhenDue,
    /// Now, at any age of the last scan.
    Now,
}

/// How a team's people and computers are scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InventorySettings {
    pub scan: ScanMode,
    /// Reads each user's sign-in methods and tokens: one request a user.
    pub user_info: bool,
}

/// The expiry of rows by the daemon.
#[derive(Debug, Clone)]
pub struct ExpirySettings {
    pub classes: TeamRetention,
    pub schedule: Cron,
}

impl ExpirySettings {
    /// `None` if no rows ever expire.
    pub fn of(classes: TeamRetention, schedule: Cron) -> Option<Arc<Self>> {
        Some(Arc::new(Self { classes, schedule })).filter(|expiry| !expiry.classes.is_empty())
    }
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub grid: WindowGrid,
    pub lag: Duration,
    /// Ages after a window's end at which it is re-scanned, rising.
    pub rescan: Vec<Duration>,
    /// Whether each day of a month is sealed before the month.
    pub partition: Partition,
    /// Ranges of one stream that are read in parallel.
    pub concurrency: usize,
    /// Teams that are read in parallel.
    pub teams_at_once: usize,
    pub streams: Vec<Stream>,
    /// Empty: every team that the token sees.
    pub teams: Vec<TeamId>,
    /// The plan's span, for teams whose span the service does not show.
    pub plan_span: Option<Duration>,
    /// Only the shard's own teams are read.
    pub shard: Shard,
    /// The start of a backfill, or the new start of the archive. `None`: the plan's span.
    pub since: Option<Instant>,
    /// Windows that end later are not read.
    pub until: Option<Instant>,
    /// Reads settled windows again now.
    pub rescan_now: bool,
    pub inventory: InventorySettings,
    /// The columns and text that new rows keep.
    pub privacy: Privacy,
    /// The daemon's pause of a team after a commit, unless the round has more to do.
    pub commit_every: Duration,
    /// `None`: nothing expires by schedule.
    pub retention: Option<Arc<ExpirySettings>>,
}

impl Settings {
    pub fn reads(&self, stream: Stream) -> bool {
        self.streams.contains(&stream)
    }

    /// The teams of `teams` that this process reads.
    pub fn own(&self, mut teams: Vec<TeamId>) -> Vec<TeamId> {
        teams.retain(|team| self.shard.owns(team));
        teams
    }

    /// How many re-scans are due, counted from the window's end.
    pub fn rescans_due(&self, window_end: Instant, now: Instant) -> u32 {
        let due = self.rescan.iter().filter(|age| window_end.plus(**age) <= now).count();
        u32::try_from(due).expect("BUG: a configuration has few re-scans")
    }

    /// How many re-scans each window gets.
    pub fn rescans_wanted(&self) -> u32 {
        u32::try_from(self.rescan.len()).expect("BUG: a configuration has few re-scans")
    }

    /// Whether a settled window must be re-scanned. A shorter list of ages does not cancel its last re-scan.
    pub fn is_rescan_due(&self, held: &WindowRecord, now: Instant) -> bool {
        let done = held.rescans.min(self.rescans_wanted().saturating_sub(1));
        let is_due = self.rescans_wanted() == 0 || self.rescans_due(held.range.end, now) > done;
        held.state == WindowState::Settled && is_due
    }

    /// The start of a backfill: as configured, or as long ago as the plan's span, or 30 days ago.
    pub fn backfill_start(&self, plan_span: Option<Duration>, now: Instant) -> Instant {
        let span = plan_span.unwrap_or(Duration::from_secs(BACKFILL_DAYS_DEFAULT * 86_400));
        self.since.unwrap_or_else(|| now.minus(span)).max(Instant::EARLIEST)
    }

    /// Whether `--until` includes the window.
    pub fn selects(&self, window: Range) -> bool {
        self.until.is_none_or(|until| window.end <= until)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grid: WindowGrid::new(Duration::from_secs(86_400)),
            lag: Duration::from_secs(900),
            rescan: [1, 24, 72].map(|hours| Duration::from_secs(hours * 3600)).to_vec(),
            partition: Partition::Month,
            concurrency: 4,
            teams_at_once: 8,
            streams: Stream::ALL.to_vec(),
            teams: Vec::new(),
            plan_span: None,
            shard: Shard::WHOLE,
            since: None,
            until: None,
            rescan_now: false,
            inventory: InventorySettings::default(),
            privacy: Privacy::default(),
            commit_every: Duration::ZERO,
            retention: None,
        }
    }
}

//! How a team is read: checked numbers, made from the configuration.

use std::time::Duration;

use crate::api::PAGE_EVENTS_MAX;
use crate::config::Partition;
use crate::model::{Instant, Range, Shard, Stream, TeamId, WindowGrid};

/// Events or seconds after which a long reading commits what it has. What is read and waits for its commit is most of the
/// memory that a backfill takes.
pub const COMMIT_EVENTS_MAX: usize = 12_000;
/// Windows that are read whole and hold fewer events than this wait for others.
pub const COMMIT_EVENTS_MIN: usize = 8_000;
/// Events that are read and not committed, among them those of the commit under way that it has to encode itself, above which
/// reading waits. Fewer take less memory, which is worth more where it is kept for what is read next.
pub const HELD_EVENTS_MAX: usize = 24_000;
pub const COMMIT_DELAY_SECONDS_MAX: u64 = 30;
/// Events that one reading brings at most before it hands them on.
pub const READ_EVENTS_MAX: usize = 6_000;
/// The same of a re-scan: it has wide padding, and what is cut off is no longer compared with the archive.
pub const RESCAN_EVENTS_MAX: usize = 12_000;
/// Events after which a walk is cut: the page that brings more still belongs to the reading.
pub const WALK_EVENTS_MAX: usize = READ_EVENTS_MAX - PAGE_EVENTS_MAX as usize;
/// The same of a re-scan.
pub const RESCAN_WALK_EVENTS_MAX: usize = RESCAN_EVENTS_MAX - PAGE_EVENTS_MAX as usize;
/// Events that a span is sized to bring.
pub const SPAN_EVENTS_TARGET: u64 = 3_000;
/// How far back a first reading goes when the team does not show its plan's span.
pub const BACKFILL_DAYS_DEFAULT: u64 = 30;
/// The learned lag never grows beyond this.
pub const LAG_SECONDS_MAX: u64 = 6 * 3600;

/// When people and computers are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScanMode {
    #[default]
    Never,
    /// Once a day, and when activity tells of a change.
    WhenDue,
    /// Now, however young the last look is.
    Now,
}

/// How a team's people and computers are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InventorySettings {
    pub scan: ScanMode,
    /// Ask about each user how the user may sign in, and with which tokens: a request a user.
    pub user_info: bool,
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub grid: WindowGrid,
    pub lag: Duration,
    /// Ages after a window's end at which it is re-scanned, rising.
    pub rescan: Vec<Duration>,
    /// Whether a month is sealed day by day.
    pub partition: Partition,
    /// Ranges of one stream read at once.
    pub concurrency: usize,
    /// Teams read at once.
    pub teams_at_once: usize,
    pub streams: Vec<Stream>,
    /// Empty: every team that the token sees.
    pub teams: Vec<TeamId>,
    /// Of these, only its own are read.
    pub shard: Shard,
    /// Where a first reading begins, or to where an archive is extended; `None`: the plan's span.
    pub since: Option<Instant>,
    /// Windows that end later are left alone.
    pub until: Option<Instant>,
    /// Read settled windows again now.
    pub rescan_now: bool,
    pub inventory: InventorySettings,
    /// After a commit of a team the daemon leaves the team alone for so long, unless there is more to read at once.
    pub commit_every: Duration,
}

impl Settings {
    pub fn reads(&self, stream: Stream) -> bool {
        self.streams.contains(&stream)
    }

    /// Those of `teams` that this process reads.
    pub fn own(&self, mut teams: Vec<TeamId>) -> Vec<TeamId> {
        teams.retain(|team| self.shard.owns(team));
        teams
    }

    /// How many re-scans are due, counted from the window's end.
    pub fn tiers_passed(&self, window_end: Instant, now: Instant) -> u32 {
        let passed = self.rescan.iter().filter(|tier| window_end.plus(**tier) <= now).count();
        u32::try_from(passed).expect("BUG: a configuration has few tiers")
    }

    pub fn tiers(&self) -> u32 {
        u32::try_from(self.rescan.len()).expect("BUG: a configuration has few tiers")
    }

    /// Whether `--since` and `--until` leave the window in.
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
            shard: Shard::WHOLE,
            since: None,
            until: None,
            rescan_now: false,
            inventory: InventorySettings::default(),
            commit_every: Duration::ZERO,
        }
    }
}

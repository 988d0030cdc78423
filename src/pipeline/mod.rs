//! Where stages meet: one window, one stream, one team, the fleet; gaps and findings.
//!
//! [`plan`] says what there is to read, `windowed` and `ledger_poll` read it, `join` finds what the archive lacks,
//! [`flush`](Flushed) makes it one commit, `team` and `fleet` do it for all. Deciding is pure; the edges come in through
//! [`TeamContext`].

mod batch;
mod billing;
mod budget;
mod catch_up;
mod change;
mod computers;
mod daemon;
mod density;
mod desk;
mod context;
mod estimate;
mod fleet;
mod flush;
mod flushed;
mod join;
mod ledger_poll;
mod live;
mod looks;
mod looks_left;
mod loss;
mod making;
mod memory;
mod piece;
mod plan;
mod progress;
mod quarantine;
mod ranges;
mod removal;
pub mod schedule;
mod service_clock;
mod sessions;
mod restless;
mod seal;
mod settings;
mod spans;
mod status;
mod team;
mod told;
mod urgency;
mod user_info;
mod visit;
mod waiting;
mod window_index;
mod windowed;
mod workers;

use thiserror::Error;

use crate::api::ApiError;
use crate::archive::ArchiveError;

pub use budget::Budget;
pub use catch_up::catch_up_by;
pub use context::TeamContext;
pub use daemon::{Command, Daemon};
pub use density::{Density, sample};
pub use desk::weight;
pub use estimate::{Estimate, estimate, estimate_of_team};
pub use fleet::{Fleet, FleetRound};
pub use flushed::Flushed;
pub use live::{Detected, Detections, Late, Live, Snapshot, TaskLive, TeamLive, Verified};
pub use looks::{LOOK_AGE, LookRound, LooksPlanned, count_users, looks_planned};
pub use looks_left::LooksLeft;
pub use making::{Made, Making};
pub use plan::{StreamPlan, Windows, lag, plan, windows_of};
pub use progress::{Progress, Quiet};
pub use quarantine::{Retried, RetriedByReason, retry_quarantine};
pub use sessions::{Remembered, correlate, put_off};
pub use settings::{BACKFILL_DAYS_DEFAULT, InventorySettings, Looks, Settings};
pub use status::{InventoryStatus, StreamStatus, TeamStatus, settled_edge, status};
pub use team::{TeamRound, read_team, read_to};
pub use urgency::{Known, Urgency};
pub use visit::Edges;
pub use workers::Workers;

/// Why a round, or a part of it, was not done.
#[derive(Debug, Error)]
pub enum RoundError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

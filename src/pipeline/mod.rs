//! Where stages meet: one window, one stream, one team, the fleet; gaps and findings.
//!
//! `plan` says what there is to read, `read` reads it, `commit` finds what the archive lacks and makes it one commit,
//! `sessions` follow, `team_round` does it all for one team, `fleet` for all, and `daemon` again and again. Deciding is pure;
//! the edges come in through `team`.

mod commit;
mod daemon;
mod error;
mod fleet;
mod look;
mod loss;
mod plan;
mod progress;
mod read;
mod sealing;
mod sessions;
mod settings;
mod status;
mod team;
mod team_round;
mod workers;

pub use commit::counts::Flushed;
pub use commit::quarantine::{Retried, RetriedByReason, retry_quarantine};
pub use daemon::event_loop::{Command, Daemon};
pub use daemon::live::{Detected, Detections, Late, Live, Snapshot, TaskLive, TeamLive, Verified};
pub use daemon::open_teams::weight;
pub use daemon::timetable as schedule;
pub use daemon::visit::Edges;
pub use error::RoundError;
pub use fleet::{Fleet, FleetRound};
pub use look::ask::{LooksPlanned, count_users, looks_planned};
pub use look::backlog::LooksLeft;
pub use look::record::{LOOK_AGE, LookRound};
pub use plan::density::{Density, sample};
pub use plan::estimate::{Estimate, estimate, estimate_of_team};
pub use plan::stream_plan::{StreamPlan, Windows, lag, plan, windows_of};
pub use plan::urgency::{Known, Urgency};
pub use progress::{Progress, Quiet};
pub use sessions::making::{Made, Making};
pub use sessions::part::catch_up_by;
pub use sessions::update::{Remembered, correlate, put_off};
pub use settings::{BACKFILL_DAYS_DEFAULT, InventorySettings, Looks, Settings};
pub use status::{InventoryStatus, StreamStatus, TeamStatus, settled_edge, status};
pub use team::budget::Budget;
pub use team::context::TeamContext;
pub use team_round::{TeamRound, read_team};
pub use workers::Workers;

//! Where stages meet: one window, one stream, one team, the fleet; gaps and findings.
//!
//! [`plan`] says what there is to read, `windowed` and `ledger_poll` read it, `join` finds what the archive lacks,
//! [`batch`](Flushed) makes it one commit, `team` and `fleet` do it for all. Deciding is pure; the edges come in through
//! [`TeamContext`].

mod batch;
mod billing;
mod change;
mod context;
mod fleet;
mod join;
mod ledger_poll;
mod plan;
mod progress;
mod ranges;
mod removal;
mod settings;
mod team;
mod windowed;

use thiserror::Error;

use crate::api::ApiError;
use crate::archive::ArchiveError;

pub use batch::Flushed;
pub use context::{ServiceClock, TeamContext, Workers};
pub use fleet::{Fleet, FleetRound};
pub use plan::{StreamPlan, Windows, lag, plan};
pub use progress::{Progress, Quiet};
pub use settings::{BACKFILL_DAYS_DEFAULT, Settings};
pub use team::{TeamRound, read_team, read_to};

/// Why a round, or a part of it, was not done.
#[derive(Debug, Error)]
pub enum RoundError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

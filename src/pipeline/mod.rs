//! Where stages meet: one window, one stream, one team, the fleet; gaps and findings.
//!
//! # The way of an event, from `api` to a committed file
//!
//! 1. `plan` says which ranges of event time a stream lacks ([`StreamPlan`]), and cuts them into spans, each for one reading.
//! 2. `read` asks for spans side by side. Each reading first takes a `Share` of the [`Budget`]: room for its events. `collect`
//!    answers with a `Segment`: `Counted` events of a range, and whether they are proved complete.
//! 3. The events of a segment become a `Piece` for each window. Workers make columns of rows of it while other spans are read. A
//!    bounded channel keeps the segments in order.
//! 4. What a segment says becomes a `Batch`: its pieces, changes of window records, findings. With its share it goes into the `Inbox`
//!    of the commit stage, which is bounded, too: a reading that brings more than the stage takes waits there.
//! 5. The `Committer` alone owns what is read and not committed: one batch, which the others join. It has the `Encoder` make files
//!    of windows that are read whole, and takes out of the batch what is worth a commit.
//! 6. A commit joins its batch with what the archive holds (`join`), adds what is worth noticing (`flush`), and is a `Draft` then.
//!    `archive` writes the draft's files and, last, the ledger's line: now readers see the event.
//! 7. Sessions follow in the same commit. Of a backfill the `SessionMaker` makes them ([`Made`]) beside later commits.
//!
//! An error ends the stage that meets it, and closes its channels: what is connected with it ends, too. `team_round` is the one
//! place where a round ends, and says why. On one thread (the simulation) and on many the same code runs: only [`Workers`]
//! differ.
//!
//! `fleet` reads all teams once, and `daemon` again and again. What decides is pure; the edges come in through `team`.

mod commit;
mod daemon;
mod error;
mod fleet;
mod scan;
mod loss;
mod plan;
mod progress;
mod read;
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
pub use daemon::task_run::Edges;
pub use daemon::timetable as schedule;
pub use error::RoundError;
pub use fleet::{Fleet, FleetRound};
pub use plan::density::{Density, sample};
pub use plan::estimate::{Estimate, estimate, estimate_of_team};
pub use plan::stream_plan::{StreamPlan, lag, plan};
pub use plan::urgency::{Known, Urgency};
pub use plan::window_index::{Windows, windows_of};
pub use progress::{Progress, Quiet};
pub use scan::backlog::ScanBacklog;
pub use scan::record::{SCAN_AGE, ScanRound};
pub use scan::requests::{PlannedScan, count_users, planned_scan};
pub use sessions::catch_up::Chunk;
pub use sessions::update::{correlate, defer_sessions};
pub use settings::{BACKFILL_DAYS_DEFAULT, InventorySettings, ScanMode, Settings};
pub use status::{InventoryStatus, StreamStatus, TeamStatus, settled_edge, status};
pub use team::budget::Budget;
pub use team_round::TeamRound;
pub use workers::Workers;

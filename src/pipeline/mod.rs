//! The room where the others meet: a round of a team plans, reads and commits.
//!
//! # The way of an event, from `api` to a committed file
//!
//! 1. `plan` finds the ranges of event time that a stream lacks ([`StreamPlan`], from its [`StreamWindows`]), and cuts them
//!    into spans. Each reading reads one span.
//! 2. `read` reads several spans in parallel. Each reading first takes a permit of the [`EventBudget`]: room for its events.
//!    `api` answers with a `Page` of `RawEvent`s: the bytes as served, with the id and the time that `collect` compares.
//!    `collect` returns a `Segment`: a range, whether it is proved complete, and its events. Each is a `CountedEvent`,
//!    because an event without an id can occur several times.
//! 3. A segment becomes a `Batch`, the unit of a commit: events by window, with the changes of the windows' records and the
//!    findings that they prove. The batch keeps the permit and goes into the `Inbox`.
//! 4. The inbox is a bounded channel to the commit stage. During a commit it fills up, and the readings wait.
//! 5. Only the `Committer` owns uncommitted events. It joins batches until they are large enough for a commit. It holds
//!    windows that are read only in part.
//! 6. `flush` joins a batch with the archived events: `normalize` makes an `EventRow` of each new event, or a `RejectRow` for
//!    quarantine. With the findings and sessions they are a `Draft`. The archive writes the files of the draft and, last, the
//!    ledger's line: from now on readers see the event.
//! 7. A commit of a backfill defers its sessions. A `Chunk` makes them later: a later commit of the backfill includes them, or
//!    the end of the round commits them.
//!
//! An error ends its stage and closes the channel, which ends the other stage. `team_round` is the one place where a round ends. The
//! same code runs on one thread (the simulation) and on many: only [`Workers`] differs.
//!
//! `fleet` reads all teams once. The room `daemon` reads them repeatedly. The deciding code is pure. The [`Edges`] (event
//! source, archive, clock) enter through `team`.

mod commit;
mod error;
mod expiry;
mod fleet;
mod loss;
mod plan;
mod progress;
mod read;
mod scan;
mod sessions;
mod settings;
mod status;
mod team;
mod team_round;

pub use crate::threads::Workers;
pub use commit::{CommitCounts, RetriedByReason, retry_quarantine};
pub use error::RoundError;
pub use expiry::{due_months, expire};
pub use fleet::FleetRound;
pub use plan::{Density, Estimate, SPAN_ASSUMED, StreamPlan, StreamWindows, Urgency, estimate, estimate_of_team, plan};
pub use progress::{NoProgress, Progress};
pub use scan::{REFUSALS_MAX, SCAN_AGE, ScanRequest, is_old};
pub use sessions::{Chunk, correlate, defer_sessions};
pub use settings::{BACKFILL_DAYS_DEFAULT, ExpirySettings, InventorySettings, ScanMode, Settings};
pub use status::{InventoryStatus, StreamStatus, TeamStatus, status, status_with};
pub use team::{Edges, EventBudget, TeamEdges, TeamMemory};
pub use team_round::{TeamRound, read_team};

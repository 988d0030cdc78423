//! The progress of a round, shown as bars in a terminal.

use std::time::Duration;

use crate::model::{Range, Stream, TeamId};

use crate::pipeline::commit::CommitCounts;

/// Receives the progress of a round. Several streams call it at once.
pub trait Progress: Send + Sync {
    /// The service sent the team's name.
    fn named(&self, _team: &TeamId, _name: &str) {}
    /// The round will read this many seconds of event time, without the open windows.
    fn planned(&self, _team: &TeamId, _stream: Stream, _seconds: u64) {}
    /// A part was read. `planned`: the part belongs to the planned seconds.
    fn read(&self, _team: &TeamId, _stream: Stream, _part: Range, _events: u64, _planned: bool) {}
    /// A batch was committed, in the time `took`.
    fn committed(&self, _team: &TeamId, _counts: &CommitCounts, _took: Duration) {}
}

/// Shows no progress.
pub struct NoProgress;

impl Progress for NoProgress {}

//! What a round tells while it works; shown as progress bars where there is a terminal.

use std::time::Duration;

use crate::model::{Range, Stream, TeamId};

use crate::pipeline::commit::counts::Flushed;

/// Hears how a round goes on. Called from several streams at once.
pub trait Progress: Send + Sync {
    /// The service says what the team is called.
    fn named(&self, _team: &TeamId, _name: &str) {}
    /// So many seconds of event time will be read, beside the open windows.
    fn planned(&self, _team: &TeamId, _stream: Stream, _seconds: u64) {}
    /// A part was read; `planned` says whether it was among the planned seconds.
    fn read(&self, _team: &TeamId, _stream: Stream, _part: Range, _events: u64, _planned: bool) {}
    /// A batch became a commit, which took so long.
    fn committed(&self, _team: &TeamId, _flushed: &Flushed, _took: Duration) {}
}

/// Tells nobody.
pub struct Quiet;

impl Progress for Quiet {}

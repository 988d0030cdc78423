//! What one team's round works with: the edges, and what this process knows of the team.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::archive::{ArchiveError, StoredEvent, StreamRecord, TeamState, TeamWriter};
use crate::clock::Clock;
use crate::collect::PageLimit;
use crate::model::{Range, Stream, TeamId};
use crate::pipeline::plan::window_index::{Windows, windows_of};
use crate::pipeline::progress::Progress;
use crate::pipeline::settings::Settings;
use crate::pipeline::team::budget::Budget;
use crate::pipeline::team::memory::TeamMemory;
use crate::pipeline::team::service_clock::ServiceClock;
use crate::pipeline::workers::Workers;

/// What a team's round is given, but for the service. The readings and the stages behind them share it.
pub struct TeamEdges {
    pub team: TeamId,
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<Settings>,
    pub workers: Workers,
    pub progress: Arc<dyn Progress>,
    /// The room for the events of all teams of the process.
    pub budget: Arc<Budget>,
    pub memory: Arc<TeamMemory>,
    /// The daemon keeps it from round to round, and looks at its state in between.
    pub writer: Arc<Mutex<TeamWriter>>,
    /// How long a round settles and re-scans before it leaves the rest to the next; `None`: to the end.
    pub time_limit: Option<Duration>,
}

impl TeamEdges {
    pub fn limit(&self, stream: Stream) -> &PageLimit {
        &self.memory.limits[stream as usize]
    }

    /// The service's clock.
    pub fn service(&self) -> &ServiceClock {
        &self.memory.service
    }

    /// The team's writer; waits for a commit under way.
    pub fn writer(&self) -> MutexGuard<'_, TeamWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the archive's state as of the last commit.
    pub fn with_state<T>(&self, read: impl FnOnce(&TeamState) -> T) -> T {
        read(self.writer().state())
    }

    pub fn stream_state(&self, stream: Stream) -> (StreamRecord, Windows) {
        self.with_state(|state| windows_of(state, stream))
    }

    /// The archived events of a range.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub async fn stored(&self, stream: Stream, range: Range) -> Result<Vec<StoredEvent>, ArchiveError> {
        self.with_writer(move |writer| writer.events_in(stream, range)).await
    }

    /// Does something with the writer beside the reading.
    ///
    /// # Errors
    /// As `act`.
    pub async fn with_writer<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut TeamWriter) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let writer = self.writer.clone();
        self.workers.run(move || act(&mut writer.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

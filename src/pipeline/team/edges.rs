//! The edges of one team's round, and the state of the team in this process.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::archive::{ArchiveError, TeamState, TeamWriter};
use crate::clock::Clock;
use crate::model::TeamId;
use crate::pipeline::progress::Progress;
use crate::pipeline::settings::Settings;
use crate::pipeline::team::service_clock::ServiceClock;
use crate::pipeline::team::{EventBudget, TeamMemory};
use crate::threads::Workers;

/// The inputs of a team's round, without the service. The readings and the commit stage share them.
pub struct TeamEdges {
    pub team: TeamId,
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<Settings>,
    pub workers: Workers,
    pub progress: Arc<dyn Progress>,
    /// The room for the events of all teams of the process.
    pub budget: Arc<EventBudget>,
    pub memory: Arc<TeamMemory>,
    /// The daemon keeps it from round to round, and reads it between rounds.
    pub writer: Arc<Mutex<TeamWriter>>,
    /// The time for settling and re-scanning in a round. The next round does the rest. `None`: no limit.
    pub time_limit: Option<Duration>,
}

impl TeamEdges {
    /// The service's clock.
    pub fn service(&self) -> &ServiceClock {
        &self.memory.service
    }

    /// The team's writer. Waits for a running commit.
    pub fn writer(&self) -> MutexGuard<'_, TeamWriter> {
        self.writer.lock()
    }

    /// Reads the archive's state as of the last commit.
    pub fn with_state<T>(&self, read: impl FnOnce(&TeamState) -> T) -> T {
        read(self.writer().state())
    }

    /// Runs `act` with the writer in a worker.
    pub async fn with_writer<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut TeamWriter) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let writer = self.writer.clone();
        self.workers.run(move || act(&mut writer.lock())).await
    }
}

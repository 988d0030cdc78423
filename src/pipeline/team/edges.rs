//! The edges of a process, and of one team's round in it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

use crate::api::EventSource;
use crate::archive::{Archive, ArchiveError, TeamState, TeamWriter};
use crate::clock::Clock;
use crate::model::TeamId;
use crate::pipeline::progress::Progress;
use crate::pipeline::settings::Settings;
use crate::pipeline::team::service_clock::ServiceClock;
use crate::pipeline::team::{EventBudget, TeamMemory};
use crate::threads::Workers;

/// The edges and settings of a process. `sync` reads all teams once with them, and the daemon repeatedly.
#[derive(Clone)]
pub struct Edges {
    pub source: Arc<dyn EventSource>,
    pub archive: Arc<Archive>,
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<Settings>,
    pub workers: Workers,
    pub progress: Arc<dyn Progress>,
}

/// The edges of one team's round. The readings and the commit stage share them.
pub struct TeamEdges {
    pub edges: Edges,
    pub team: TeamId,
    /// The room for the events of all teams of the process.
    pub budget: Arc<EventBudget>,
    pub memory: Arc<TeamMemory>,
    /// The daemon keeps it from round to round, and reads it between rounds. A commit holds the lock until the store answers, so
    /// a task waits for the lock without its thread: the runtime has few threads.
    pub writer: Arc<Mutex<TeamWriter>>,
    /// The time for settling and re-scanning in a round. The next round does the rest. `None`: no limit.
    pub time_limit: Option<Duration>,
}

impl Deref for TeamEdges {
    type Target = Edges;

    fn deref(&self) -> &Edges {
        &self.edges
    }
}

impl Edges {
    /// Opens a team for writing. A bucket takes several requests for it.
    ///
    /// # Errors
    /// Those of [`Archive::writer`].
    pub async fn open_writer(&self, team: &TeamId) -> Result<Arc<Mutex<TeamWriter>>, ArchiveError> {
        let (archive, team) = (self.archive.clone(), team.clone());
        let writer = self.workers.run(move || archive.writer(&team)).await?;
        Ok(Arc::new(Mutex::new(writer)))
    }
}

impl TeamEdges {
    /// Opens a team for one round without a time limit.
    ///
    /// # Errors
    /// When the team cannot be opened for writing.
    pub async fn open(edges: Edges, team: TeamId, budget: Arc<EventBudget>) -> Result<Self, ArchiveError> {
        let memory = Arc::new(TeamMemory::new(edges.clock.clone()));
        let writer = edges.open_writer(&team).await?;
        Ok(Self { edges, team, budget, memory, writer, time_limit: None })
    }

    /// The service's clock.
    pub fn service(&self) -> &ServiceClock {
        &self.memory.service
    }

    /// The team's writer. Waits for a running commit.
    pub async fn writer(&self) -> MutexGuard<'_, TeamWriter> {
        self.writer.lock().await
    }

    /// Reads the archive's state as of the last commit. Waits for a running commit.
    pub async fn with_state<T>(&self, read: impl FnOnce(&TeamState) -> T) -> T {
        read(self.writer().await.state())
    }

    /// Runs `act` with the writer in a worker. A task takes the lock: a round does not poll its readings while it waits for the commit
    /// stage, and such a reading must not hold the lock.
    pub async fn with_writer<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut TeamWriter) -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let (writer, workers) = (self.writer.clone(), self.workers);
        let act = async move {
            let mut writer = writer.lock_owned().await;
            workers.run(move || act(&mut writer)).await
        };
        self.workers.spawn(act).await
    }
}

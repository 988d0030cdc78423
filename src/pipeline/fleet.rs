//! Reads all teams of a token in parallel. The failure of one team does not stop the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;

use crate::api::{ApiError, EventSource};
use crate::archive::Archive;
use crate::clock::Clock;
use crate::model::TeamId;

use crate::pipeline::commit::CommitCounts;
use crate::pipeline::error::RoundError;
use crate::pipeline::progress::Progress;
use crate::pipeline::settings::Settings;
use crate::pipeline::team::{EventBudget, TeamEdges, TeamMemory};
use crate::pipeline::team_round::{TeamRound, read_team};
use crate::threads::Workers;

/// Reads many teams.
pub struct Fleet {
    pub source: Arc<dyn EventSource>,
    pub archive: Arc<Archive>,
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<Settings>,
    pub workers: Workers,
    pub progress: Arc<dyn Progress>,
}

/// The result of a round of all teams.
#[derive(Debug, Default)]
pub struct FleetRound {
    pub teams: Vec<(TeamId, Result<TeamRound, RoundError>)>,
}

impl FleetRound {
    /// Whether the round did everything that was requested.
    pub fn is_done(&self) -> bool {
        self.teams.iter().all(|(_, round)| round.as_ref().is_ok_and(TeamRound::is_done))
    }

    /// Whether a range was unstable and stays open.
    pub fn has_deferred(&self) -> bool {
        self.teams.iter().any(|(_, round)| round.as_ref().is_ok_and(|round| !round.deferred.open.is_empty()))
    }

    /// The sum of all commits.
    pub fn committed(&self) -> CommitCounts {
        let mut sum = CommitCounts::default();
        self.teams.iter().filter_map(|(_, round)| round.as_ref().ok()).for_each(|round| sum.add(&round.committed));
        sum
    }
}

impl Fleet {
    /// The teams to read, each once: the requested ones, or all that the token sees. Of these, only the shard's own.
    ///
    /// # Errors
    /// When the service does not list them.
    pub async fn teams(&self) -> Result<Vec<TeamId>, ApiError> {
        let teams = match self.settings.teams.as_slice() {
            [] => self.source.teams().await?.body,
            named => named.to_vec(),
        };
        let mut named = BTreeSet::new();
        Ok(self.settings.own(teams.into_iter().filter(|team| named.insert(team.clone())).collect()))
    }

    /// Reads every team once.
    ///
    /// # Errors
    /// When the service does not list the teams. The failure of a team is in its round.
    pub async fn read_once(&self) -> Result<FleetRound, ApiError> {
        self.read_within(&EventBudget::of(&self.settings)).await
    }

    /// As [`Fleet::read_once`], within `budget`.
    pub async fn read_within(&self, budget: &Arc<EventBudget>) -> Result<FleetRound, ApiError> {
        let read = |team: TeamId| async move { (team.clone(), self.read_team(&team, budget).await) };
        let rounds = self.teams().await?.into_iter().map(read);
        let teams = futures::stream::iter(rounds).buffer_unordered(self.settings.teams_at_once).collect().await;
        Ok(FleetRound { teams })
    }

    async fn read_team(&self, team: &TeamId, budget: &Arc<EventBudget>) -> Result<TeamRound, RoundError> {
        let edges = TeamEdges {
            team: team.clone(),
            clock: self.clock.clone(),
            settings: self.settings.clone(),
            workers: self.workers,
            progress: self.progress.clone(),
            budget: budget.clone(),
            memory: Arc::new(TeamMemory::new(self.clock.clone())),
            writer: Arc::new(Mutex::new(self.archive.writer(team)?)),
            time_limit: None,
        };
        Ok(read_team(edges, self.source.clone()).await)
    }
}

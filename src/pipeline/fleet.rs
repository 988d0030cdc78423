//! Reads all teams of a token in parallel. The failure of one team does not stop the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;

use crate::api::ApiError;
use crate::model::TeamId;

use crate::pipeline::commit::CommitCounts;
use crate::pipeline::error::RoundError;
use crate::pipeline::team::{Edges, EventBudget, TeamEdges};
use crate::pipeline::team_round::{TeamRound, read_team};

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

    /// Whether a range was not read whole, and stays open.
    pub fn has_deferred(&self) -> bool {
        let is_whole = |round: &TeamRound| round.deferred.open.is_empty() && round.deferred.unread.is_empty();
        self.teams.iter().any(|(_, round)| round.as_ref().is_ok_and(|round| !is_whole(round)))
    }

    /// The sum of all commits.
    pub fn committed(&self) -> CommitCounts {
        let mut sum = CommitCounts::default();
        self.teams.iter().filter_map(|(_, round)| round.as_ref().ok()).for_each(|round| sum.add(&round.committed));
        sum
    }
}

impl Edges {
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
        let budget = &EventBudget::of(&self.settings);
        let read = |team: TeamId| async move {
            let round = match TeamEdges::open(self.clone(), team.clone(), budget.clone()).await {
                Ok(edges) => Ok(read_team(Arc::new(edges)).await),
                Err(error) => Err(error.into()),
            };
            (team, round)
        };
        let rounds = self.teams().await?.into_iter().map(read);
        let teams = futures::stream::iter(rounds).buffer_unordered(self.settings.teams_at_once).collect().await;
        Ok(FleetRound { teams })
    }
}

//! All teams of a token: side by side, one team's failure leaving the others alone.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use crate::api::{ApiError, EventSource};
use crate::archive::{Archive, Finding, FindingKind};
use crate::clock::Clock;
use crate::model::{Instant, LedgerSeq, TeamId};

use super::context::{TeamContext, Workers};
use super::progress::Progress;
use super::settings::Settings;
use super::team::{TeamRound, read_team};
use super::{Flushed, RoundError};

/// What reads many teams.
pub struct Fleet {
    pub source: Arc<dyn EventSource>,
    pub archive: Arc<Archive>,
    pub clock: Arc<dyn Clock>,
    pub settings: Arc<Settings>,
    pub workers: Workers,
    pub progress: Arc<dyn Progress>,
}

/// What a round of all teams came to.
#[derive(Debug, Default)]
pub struct FleetRound {
    pub teams: Vec<(TeamId, Result<TeamRound, RoundError>)>,
}

impl FleetRound {
    /// Whether everything asked for was done.
    pub fn is_done(&self) -> bool {
        self.teams.iter().all(|(_, round)| round.as_ref().is_ok_and(TeamRound::is_done))
    }

    /// What was committed in all.
    pub fn committed(&self) -> Flushed {
        let mut sum = Flushed::default();
        for round in self.teams.iter().filter_map(|(_, round)| round.as_ref().ok()) {
            sum.rows += round.committed.rows;
            sum.rejects += round.committed.rejects;
            sum.late += round.committed.late;
            sum.gaps += round.committed.gaps;
            sum.commits += round.committed.commits;
        }
        sum
    }
}

impl Fleet {
    /// The teams to read: those asked for, else all that the token sees.
    ///
    /// # Errors
    /// When the service does not list them.
    pub async fn teams(&self) -> Result<Vec<TeamId>, ApiError> {
        match self.settings.teams.as_slice() {
            [] => Ok(self.source.teams().await?.body),
            named => Ok(named.to_vec()),
        }
    }

    /// Reads every team once.
    ///
    /// # Errors
    /// When the service does not list the teams; a team's own failure stands in its round.
    pub async fn read_once(&self) -> Result<FleetRound, ApiError> {
        let teams = self.teams().await?;
        let rounds = teams.into_iter().map(|team| async move {
            let round = self.read_team(&team).await;
            (team, round)
        });
        let teams = futures::stream::iter(rounds).buffer_unordered(self.settings.teams_at_once).collect().await;
        Ok(FleetRound { teams })
    }

    async fn read_team(&self, team: &TeamId) -> Result<TeamRound, RoundError> {
        let now = self.clock.now();
        let writer = self.archive.writer(team, now)?;
        let (recovery, last) = (writer.recovery(), writer.state().seq);
        let ctx = TeamContext::new(
            writer,
            self.source.clone(),
            self.clock.clone(),
            self.settings.clone(),
            self.workers,
            self.progress.clone(),
        );
        if let Some(back) = recovery.clock_back {
            let finding = clock_regression(last, back, now);
            ctx.add(|batch| batch.note_finding(finding)).await?;
        }
        Ok(read_team(&ctx).await)
    }
}

/// The machine's clock stands before the last commit: the order of commits is the ledger's, not the clock's.
fn clock_regression(last: LedgerSeq, back: Duration, now: Instant) -> Finding {
    Finding {
        stream: None,
        kind: FindingKind::ClockRegression,
        subject: format!("commit {last}"),
        from: None,
        to: None,
        reason: format!("this machine's clock was set back by at least {} s since this commit", back.as_secs()),
        count: 1,
        found_at: now,
    }
}

//! One run of a task of a team.

use std::sync::Arc;
use std::time::Duration;

use crate::archive::{ArchiveError, Finding, FindingKind};
use crate::model::{LedgerSeq, TeamId};

use super::job::{RunOutcome, Task};
use super::open_teams::OpenTeams;
use crate::pipeline::{CommitCounts, Edges, RoundError, TeamStatus, Urgency, read_team, status_with};

/// A run settles and re-scans for this time, and leaves the rest to the next run. Each run reads the newest events first.
const RUN_TIME_MAX: Duration = Duration::from_secs(10);
/// After this number of consecutive failures, the log names a task only when the number doubles.
const FAILURES_LOGGED: u32 = 3;

/// The end of a run.
pub struct TaskRun {
    pub team: TeamId,
    pub task: Task,
    pub outcome: RunOutcome,
    pub urgency: Option<Urgency>,
    pub status: Option<TeamStatus>,
    pub gaps: Arc<Vec<(LedgerSeq, Finding)>>,
    /// The ledger's last line when this run began.
    pub began_at: Option<LedgerSeq>,
    pub committed: CommitCounts,
    pub error: Option<String>,
    /// The seconds by which the service's clock is ahead of the machine's.
    pub clock_skew: Option<i64>,
}

impl TaskRun {
    /// A run that panicked.
    pub fn broken(team: TeamId, task: Task, error: String) -> Self {
        Self {
            team,
            task,
            outcome: RunOutcome::Refused,
            urgency: None,
            status: None,
            gaps: Arc::default(),
            began_at: None,
            committed: CommitCounts::default(),
            error: Some(error),
            clock_skew: None,
        }
    }

    /// Logs new events, a gap, a failure, and the end of failures.
    pub fn log(&self, failures: u32, had_failed: bool) {
        let (team, task) = (&self.team, self.task.as_str());
        let CommitCounts { commits, rows: new, rejects: quarantined, late, gaps, .. } = self.committed;
        if commits > 0 && new + quarantined > 0 {
            tracing::info!(%team, task, new, late, quarantined, "committed");
        }
        if gaps > 0 {
            tracing::warn!(%team, task, gaps, "a gap was recorded: `annals status` and `findings` name it");
        }
        match &self.error {
            Some(error) if failures <= FAILURES_LOGGED || failures.is_power_of_two() => {
                tracing::warn!(%team, task, failures, error, "not done");
            }
            None if had_failed => tracing::info!(%team, task, "works again"),
            _ => {}
        }
    }
}

pub async fn run_task(open_teams: Arc<OpenTeams>, edges: Edges, team: TeamId, task: Task) -> TaskRun {
    let edges = Edges { settings: Arc::new(task.settings(&edges.settings)), ..edges };
    let edges = match open_teams.open(edges, &team, RUN_TIME_MAX).await {
        Ok(edges) => Arc::new(edges),
        Err(error) => {
            let error = RoundError::from(error);
            let outcome = outcome_of(&error);
            return TaskRun { outcome, ..TaskRun::broken(team, task, error.to_string()) };
        }
    };
    let began_at = edges.with_state(|state| state.seq).await;
    let round = read_team(edges.clone()).await;
    let failures = || round.failures.iter().map(|(_, error)| error).chain(&round.scan.failures);
    let keeps = !failures().any(|error| matches!(error, RoundError::Archive(error) if error.needs_reopen()));
    let is_fenced = |error: &&RoundError| matches!(error, RoundError::Archive(error) if error.is_fenced());
    let error = failures().find(is_fenced).or(failures().next());
    let outcome = error.map_or(RunOutcome::Done { is_unfinished: round.deferred.is_unfinished }, outcome_of);
    let memory = &edges.memory;
    let run = edges
        .with_state(|state| {
            let urgency = match task {
                Task::Read(stream) => Some(Urgency::of(state, stream, &memory.known(stream), edges.clock.now())),
                Task::Inventory => None,
            };
            let gaps = state.findings.iter().filter(|(_, finding)| finding.kind == FindingKind::Gap);
            // Read points and windows have the service's times.
            let status = status_with(state, &|stream| memory.known(stream), memory.service.now());
            TaskRun {
                team,
                task,
                outcome,
                urgency,
                status: Some(TeamStatus { held_back: memory.held_back(), ..status }),
                gaps: Arc::new(gaps.cloned().collect()),
                began_at: Some(began_at),
                committed: CommitCounts {
                    conflicts: u64::from(outcome == RunOutcome::Fenced),
                    ..round.committed.clone()
                },
                error: error.map(ToString::to_string),
                // A failed run may know only old dates.
                clock_skew: if error.is_none() { memory.service.seconds_ahead() } else { None },
            }
        })
        .await;
    // A writer that is not kept releases the team's lock.
    drop(edges);
    open_teams.close(&run.team, keeps).await;
    run
}

/// Whether a retry may succeed without help.
fn outcome_of(error: &RoundError) -> RunOutcome {
    match error {
        RoundError::Api(error) if error.is_transient() => RunOutcome::Failed { not_before: error.retry_after() },
        RoundError::Archive(error) if error.is_fenced() => RunOutcome::Fenced,
        RoundError::Archive(error) if error.is_transient() || matches!(error, ArchiveError::Locked { .. }) => {
            RunOutcome::Unwritten
        }
        RoundError::Api(_) | RoundError::Archive(_) => RunOutcome::Refused,
    }
}

//! One run of a task of a team.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::api::{ApiError, EventSource};
use crate::archive::{ArchiveError, Finding, FindingKind, TeamWriter};
use crate::clock::Clock;
use crate::model::{LedgerSeq, Stream, TeamId};

use super::job::{RunOutcome, Task};
use super::open_teams::{OpenTeam, OpenTeams};
use crate::pipeline::{
    CommitCounts, EventBudget, ExpirySettings, InventorySettings, Progress, RoundError, ScanMode, Settings, TeamEdges,
    TeamMemory, TeamRound, TeamStatus, Urgency, Workers, billing_within, read_team, status_with,
};

/// A run settles and re-scans for this time, and leaves the rest to the next run. Each run reads the newest events first.
const RUN_TIME_MAX: Duration = Duration::from_secs(10);
/// After this number of consecutive failures, the log names a task only when the number doubles.
const FAILURES_LOGGED: u32 = 3;

/// The edges and settings of all runs. A reload of the configuration replaces them.
pub struct Edges {
    pub source: Arc<dyn EventSource>,
    pub clock: Arc<dyn Clock>,
    pub workers: Workers,
    pub progress: Arc<dyn Progress>,
    /// Of all tasks.
    pub settings: Settings,
}

impl Edges {
    /// Expires months by a schedule.
    #[must_use]
    pub fn with_expiry(mut self, expiry: ExpirySettings) -> Self {
        self.settings.retention = Some(Arc::new(expiry)).filter(|expiry| !expiry.classes.is_empty());
        self
    }

    /// The tasks of each team.
    pub fn tasks(&self) -> Vec<Task> {
        let inventory = (self.settings.inventory.scan != ScanMode::Never).then_some(Task::Inventory);
        self.settings.streams.iter().map(|stream| Task::Read(*stream)).chain(inventory).collect()
    }

    /// The settings of a run, which reads one stream or only the inventory.
    fn settings_of(&self, task: Task) -> Arc<Settings> {
        let all = self.settings.clone();
        Arc::new(match task {
            Task::Read(stream) => {
                let inventory = InventorySettings { scan: ScanMode::Never, ..all.inventory };
                Settings { streams: vec![stream], inventory, ..all }
            }
            Task::Inventory => Settings { streams: Vec::new(), ..all },
        })
    }
}

/// The end of a run.
pub struct TaskRun {
    pub team: TeamId,
    pub task: Task,
    pub outcome: RunOutcome,
    pub urgency: Option<Urgency>,
    pub status: Option<TeamStatus>,
    pub gaps: Arc<Vec<(LedgerSeq, Finding)>>,
    /// The ledger's last line when this run opened the team.
    pub opened_at: Option<LedgerSeq>,
    pub committed: CommitCounts,
    pub error: Option<String>,
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
            opened_at: None,
            committed: CommitCounts::default(),
            error: Some(error),
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

/// Runs a task of a team.
pub async fn run_task(open_teams: Arc<OpenTeams>, edges: Arc<Edges>, team: TeamId, task: Task) -> TaskRun {
    let opened = match open_teams.open(&team).await {
        Ok(opened) => opened,
        Err(error) => {
            let error = RoundError::from(error);
            let outcome = outcome_of(&error);
            return TaskRun { outcome, ..TaskRun::broken(team, task, error.to_string()) };
        }
    };
    let (writer, memory) = (opened.writer.clone(), opened.memory.clone());
    let seq = writer.lock().state().seq;
    let opened_at = opened.is_new.then_some(seq);
    let round = read(&edges, &team, opened, open_teams.budget.clone(), task).await;
    let mut run = conclude(&edges, &team, task, &writer, &memory, &round);
    run.opened_at = opened_at;
    let failures = || round.failures.iter().map(|(_, error)| error).chain(&round.scan.failures);
    let keeps = !failures().any(|error| matches!(error, RoundError::Archive(error) if error.needs_reopen()));
    let is_fenced = |error: &&RoundError| matches!(error, RoundError::Archive(error) if error.is_fenced());
    if let Some(error) = failures().find(is_fenced).or(failures().next()) {
        (run.outcome, run.error) = (outcome_of(error), Some(error.to_string()));
    }
    run.committed.conflicts = u64::from(run.outcome == RunOutcome::Fenced);
    drop(writer);
    open_teams.close(&team, keeps);
    run
}

async fn read(edges: &Edges, team: &TeamId, opened: OpenTeam, budget: Arc<EventBudget>, task: Task) -> TeamRound {
    let team_edges = TeamEdges {
        team: team.clone(),
        clock: edges.clock.clone(),
        settings: edges.settings_of(task),
        workers: edges.workers,
        progress: edges.progress.clone(),
        budget,
        memory: opened.memory,
        writer: opened.writer,
        time_limit: Some(RUN_TIME_MAX),
    };
    read_team(team_edges, edges.source.clone()).await
}

fn conclude(
    edges: &Edges,
    team: &TeamId,
    task: Task,
    writer: &Mutex<TeamWriter>,
    memory: &TeamMemory,
    round: &TeamRound,
) -> TaskRun {
    let writer = writer.lock();
    let (state, now) = (writer.state(), edges.clock.now());
    let within = match task {
        Task::Read(Stream::Billing) => billing_within(state, &memory.known(Stream::Billing)),
        Task::Read(_) | Task::Inventory => None,
    };
    let gaps = state.findings.iter().filter(|(_, finding)| finding.kind == FindingKind::Gap);
    TaskRun {
        team: team.clone(),
        task,
        outcome: RunOutcome::Done { is_unfinished: round.deferred.is_unfinished, within },
        urgency: match task {
            Task::Read(stream) => Some(Urgency::of(state, stream, &memory.known(stream), now)),
            Task::Inventory => None,
        },
        status: Some(TeamStatus {
            held_back: memory.held_back(),
            ..status_with(state, &|stream| memory.known(stream), now)
        }),
        gaps: Arc::new(gaps.cloned().collect()),
        opened_at: None,
        committed: round.committed.clone(),
        error: None,
    }
}

/// Whether a retry may succeed without help.
fn outcome_of(error: &RoundError) -> RunOutcome {
    match error {
        RoundError::Api(ApiError::Throttled { retry_after, .. } | ApiError::Unavailable { retry_after, .. }) => {
            RunOutcome::Failed { not_before: *retry_after }
        }
        RoundError::Api(error) if error.is_transient() => RunOutcome::Failed { not_before: None },
        RoundError::Archive(ArchiveError::Locked { .. }) => RunOutcome::Failed { not_before: None },
        RoundError::Archive(error) if error.is_fenced() => RunOutcome::Fenced,
        RoundError::Archive(error) if error.is_transient() => RunOutcome::Failed { not_before: None },
        RoundError::Api(_) | RoundError::Archive(_) => RunOutcome::Refused,
    }
}

//! Busy teams in parallel in one process: their uncommitted events together stay within the limit, and every team
//! progresses. Readings do not wait for a commit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use annals::api::{EventSource, HttpOptions, HttpSource, RetryPolicy, Retrying, TokenSource};
use annals::archive::{Archive, TeamWriter, VerifyOptions, verify};
use annals::clock::SystemClock;
use annals::model::{Instant, Range, Stream, TeamId};
use annals::pipeline::{CommitCounts, Edges, EventBudget, Progress, Settings, TeamEdges, Workers, read_team};
use annals::sandbox::{RunningSandbox, Sandbox, SandboxConfig};
use annals::store::MemoryStore;
use futures::future::join_all;
use tokio::sync::OwnedMutexGuard;

const TEAMS: u32 = 8;
const BOUND: usize = 15_000;

/// What the teams did, in order.
#[derive(Default, Clone)]
struct Watched {
    /// The number of rows of each commit.
    commits: Vec<(TeamId, u64)>,
    /// Events that were read and not committed: now, and at most.
    held: u64,
    most_held: u64,
}

#[derive(Default)]
struct Watch(Mutex<Watched>);

impl Progress for Watch {
    fn read(&self, _: &TeamId, _: Stream, _: Range, events: u64, _: bool) {
        let mut watched = self.0.lock().unwrap();
        watched.held += events;
        watched.most_held = watched.most_held.max(watched.held);
    }

    fn committed(&self, team: &TeamId, flushed: &CommitCounts, _: Duration) {
        let mut watched = self.0.lock().unwrap();
        watched.commits.push((team.clone(), flushed.rows));
        watched.held -= flushed.rows + flushed.rejects + flushed.repeated;
    }
}

/// The edges of a process that reads connections into a new archive.
fn edges(sandbox: &RunningSandbox, workers: Workers, progress: Arc<dyn Progress>) -> (Edges, Arc<MemoryStore>) {
    let clock = Arc::new(SystemClock::new());
    let token = TokenSource::Fixed(sandbox.read_only_token.clone().into());
    let options = HttpOptions { requests_per_second: None, ..HttpOptions::new(&sandbox.base_url, token) };
    let http: Arc<dyn EventSource> = Arc::new(HttpSource::new(options).unwrap());
    let store = Arc::new(MemoryStore::new());
    let edges = Edges {
        source: Arc::new(Retrying::new(http, clock.clone(), RetryPolicy::default())),
        archive: Arc::new(Archive::open_or_create(store.clone(), || "test".to_owned()).unwrap()),
        clock,
        settings: Arc::new(Settings { streams: vec![Stream::Connections], ..Settings::default() }),
        workers,
        progress,
    };
    (edges, store)
}

/// Reads all teams within `budget`.
async fn read(sandbox: &RunningSandbox, budget: &Arc<EventBudget>, workers: Workers) -> Watched {
    let watch = Arc::new(Watch::default());
    let (edges, store) = edges(sandbox, workers, watch.clone());
    let rounds = edges.teams().await.unwrap().into_iter().map(|team| {
        let open = TeamEdges::open(edges.clone(), team, budget.clone());
        async { read_team(Arc::new(open.await.unwrap())).await }
    });
    for round in join_all(rounds).await {
        assert!(round.is_done(), "{:?}", round.failures);
    }
    let report = verify(&*store, &VerifyOptions::default()).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let watched = watch.0.lock().unwrap().clone();
    assert_eq!(watched.held, 0);
    watched
}

/// How much each team had committed when the first team was done.
fn when_the_first_is_done(commits: &[(TeamId, u64)], all: &BTreeMap<TeamId, u64>) -> BTreeMap<TeamId, u64> {
    let mut sums: BTreeMap<TeamId, u64> = all.keys().map(|team| (team.clone(), 0)).collect();
    for (team, rows) in commits {
        *sums.get_mut(team).unwrap() += rows;
        if sums[team] == all[team] {
            break;
        }
    }
    sums
}

/// A service with some days of busy teams.
async fn busy_teams(teams: u32) -> RunningSandbox {
    let end: Instant = "2026-11-20T00:00:00Z".parse().unwrap();
    let config = SandboxConfig {
        teams,
        days: 20,
        sessions_per_day: 300,
        now: Some(end),
        end: Some(end),
        ..SandboxConfig::default()
    };
    Sandbox::start(config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_busy_teams_stay_within_the_limit_and_none_starves() {
    let sandbox = busy_teams(TEAMS).await;
    let visible = |team: &TeamId| sandbox.handle.visible(team, Stream::Connections);
    let all: BTreeMap<TeamId, u64> = sandbox.teams.iter().map(|team| (team.clone(), visible(team))).collect();
    let total: u64 = all.values().sum();
    for workers in [Workers::Threads, Workers::Inline] {
        let budget = EventBudget::new(BOUND);
        let Watched { commits, most_held, .. } = read(&sandbox, &budget, workers).await;
        assert_eq!(commits.iter().map(|(_, rows)| rows).sum::<u64>(), total);
        assert!(most_held <= BOUND as u64, "{workers:?}: {most_held} of {BOUND} events");
        assert!(budget.try_reserve(BOUND).is_some(), "{workers:?}: unused memory was not released");
        let sums = when_the_first_is_done(&commits, &all);
        for (team, rows) in &sums {
            assert!(*rows > 0, "{workers:?}: {team} has nothing while another is done: {sums:?}");
        }
    }
    // Without the limit they hold more, so the limit works.
    let budget = EventBudget::new(usize::MAX);
    let most_held = read(&sandbox, &budget, Workers::Threads).await.most_held;
    assert!(most_held > BOUND as u64, "{most_held} events");
    sandbox.shutdown().await;
}

/// Holds the team's writer from the first reading of a range to the fourth one, as a commit does.
#[derive(Default)]
struct SlowCommit {
    writer: OnceLock<Arc<tokio::sync::Mutex<TeamWriter>>>,
    readings: Mutex<(u32, Option<OwnedMutexGuard<TeamWriter>>)>,
}

impl Progress for SlowCommit {
    fn read(&self, _: &TeamId, _: Stream, _: Range, _: u64, is_whole: bool) {
        let mut readings = self.readings.lock().unwrap();
        readings.0 += u32::from(is_whole);
        match readings.0 {
            1 => readings.1 = Some(self.writer.get().unwrap().clone().try_lock_owned().unwrap()),
            4 => readings.1 = None,
            _ => {}
        }
    }
}

/// A slow bucket can take minutes for a commit.
#[tokio::test]
async fn readings_do_not_wait_for_a_commit() {
    let sandbox = busy_teams(1).await;
    let slow = Arc::new(SlowCommit::default());
    let (edges, _) = edges(&sandbox, Workers::Inline, slow.clone());
    let (team, clock) = (edges.teams().await.unwrap().remove(0), edges.clock.clone());
    let team = Arc::new(TeamEdges::open(edges, team, EventBudget::new(100_000)).await.unwrap());
    assert!(slow.writer.set(team.writer.clone()).is_ok());
    let round = tokio::select! {
        round = read_team(team) => round,
        () = clock.sleep(Duration::from_secs(300)) => panic!("the readings wait"),
    };
    assert!(round.is_done(), "{:?}", round.failures);
    assert!(slow.readings.lock().unwrap().0 >= 4);
    sandbox.shutdown().await;
}

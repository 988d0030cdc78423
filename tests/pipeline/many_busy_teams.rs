//! Busy teams in parallel in one process: their uncommitted events together stay within the limit, and every team
//! progresses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals::api::{EventSource, HttpOptions, HttpSource, RetryPolicy, Retrying, TokenSource};
use annals::archive::{Archive, VerifyOptions, verify};
use annals::clock::SystemClock;
use annals::model::{Instant, Range, Stream, TeamId};
use annals::pipeline::{CommitCounts, Edges, EventBudget, Progress, Settings, TeamEdges, Workers, read_team};
use annals::sandbox::{RunningSandbox, Sandbox, SandboxConfig};
use annals::store::MemoryStore;
use futures::future::join_all;

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

/// Reads all teams within `budget`.
async fn read(sandbox: &RunningSandbox, budget: &Arc<EventBudget>, workers: Workers) -> Watched {
    let clock = Arc::new(SystemClock::new());
    let token = TokenSource::Fixed(sandbox.read_only_token.clone().into());
    let options = HttpOptions { requests_per_second: None, ..HttpOptions::new(&sandbox.base_url, token) };
    let http: Arc<dyn EventSource> = Arc::new(HttpSource::new(options).unwrap());
    let store = Arc::new(MemoryStore::new());
    let watch = Arc::new(Watch::default());
    let edges = Edges {
        source: Arc::new(Retrying::new(http, clock.clone(), RetryPolicy::default())),
        archive: Arc::new(Archive::open_or_create(store.clone(), || "test".to_owned()).unwrap()),
        clock,
        settings: Arc::new(Settings { streams: vec![Stream::Connections], ..Settings::default() }),
        workers,
        progress: watch.clone(),
    };
    let rounds = edges.teams().await.unwrap().into_iter().map(|team| {
        let team = TeamEdges::open(edges.clone(), team, budget.clone()).unwrap();
        async { read_team(Arc::new(team)).await }
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

#[tokio::test(flavor = "multi_thread")]
async fn eight_busy_teams_stay_within_the_limit_and_none_starves() {
    let end: Instant = "2026-11-20T00:00:00Z".parse().unwrap();
    let config = SandboxConfig {
        teams: TEAMS,
        days: 20,
        sessions_per_day: 300,
        now: Some(end),
        end: Some(end),
        ..SandboxConfig::default()
    };
    let sandbox = Sandbox::start(config).await.unwrap();
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

//! Queries to the growing archive: a few at a time, on other threads than the requests, each on one consistent snapshot. A query
//! is stopped when it takes too long or its client is gone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::Clock;
use crate::daemon::Live;
use crate::model::{LedgerSeq, TeamId};
use crate::report::{
    Engine, Extents, Interrupter, Limits, Needs, PinnedSnapshot, ReportError, SnapshotSource, TeamNames, ViewData,
};

use super::problem::Problem;
use super::queue::{QueryPermit, Queue};
use super::team_name_cache::TeamNameCache;

/// Number of parallel queries.
const AT_ONCE: usize = 2;
/// Maximum number of cached snapshots, and of idle engines for each.
const SNAPSHOTS_KEPT_MAX: usize = 4;
const IDLE_MAX: usize = 4;
/// After this time, a cached snapshot is compared with the ledgers again: `review sign` and the daemons of other shards commit
/// without this daemon's knowledge.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(30);
/// A stop between two statements of a query has no effect, so it is repeated.
const STOP_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of teams in one query.
pub const TEAMS_TOGETHER_MAX: usize = 16;

/// Runs queries on the archive.
pub struct QueryService {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    queue: Queue,
}

struct Shared {
    place: Mutex<Arc<SnapshotSource>>,
    limits: Mutex<Limits>,
    live: Arc<Live>,
    clock: Arc<dyn Clock>,
    kept: Mutex<QueryCache>,
    name_cache: TeamNameCache,
    /// Held while ledgers are read: a request for the same snapshot waits for it instead of reading again.
    reading: Mutex<()>,
}

#[derive(Default)]
struct QueryCache {
    /// The teams of the archive, and the time of their listing. Only this daemon and those of other shards add teams.
    teams: Option<(Duration, Vec<TeamId>)>,
    snapshots: Vec<CachedSnapshot>,
}

/// One snapshot of some teams, with its idle engines.
struct CachedSnapshot {
    teams: Vec<TeamId>,
    at: Duration,
    data: Arc<ViewData>,
    /// The ends of the ledgers; `None` if an old snapshot must be taken again.
    extents: Extents,
    /// Each engine covers a part of the snapshot.
    idle: Vec<(Needs, Engine)>,
}

impl QueryService {
    pub fn new(place: SnapshotSource, limits: Limits, live: Arc<Live>, clock: Arc<dyn Clock>) -> Self {
        let (place, limits) = (Mutex::new(Arc::new(place)), Mutex::new(limits));
        let (kept, name_cache) = (Mutex::default(), TeamNameCache::default());
        let shared = Shared { place, limits, live, clock: clock.clone(), kept, name_cache, reading: Mutex::default() };
        Self { shared: Arc::new(shared), clock, queue: Queue::new(AT_ONCE) }
    }

    /// Sets a new source of the same archive, with another cache or retention, and new limits for engines.
    pub fn reconfigure(&self, place: SnapshotSource, limits: Limits) {
        *self.shared.place.lock() = Arc::new(place);
        *self.shared.limits.lock() = limits;
        self.shared.kept.lock().snapshots.clear();
    }

    /// The current limits for engines.
    pub fn limits(&self) -> Limits {
        self.shared.limits.lock().clone()
    }

    /// The archive's absolute directory, if the whole archive is in it.
    pub fn directory(&self) -> Option<PathBuf> {
        self.shared.place().directory().map(Path::to_owned)
    }

    /// The grace and the public keys of a check of the archive, for a process that opens the archive itself.
    pub fn checks(&self) -> (Duration, Vec<String>) {
        let place = self.shared.place();
        let checks = place.checks();
        (checks.grace, checks.keys.iter().map(ToString::to_string).collect())
    }

    pub fn archive_id(&self) -> String {
        self.shared.place().archive_id().to_owned()
    }

    /// The teams of the archive.
    pub async fn teams(&self) -> Result<Vec<TeamId>, Problem> {
        let shared = self.shared.clone();
        on_thread(move || shared.teams()).await
    }

    /// The names of the archive's teams.
    pub async fn names(&self) -> Result<Arc<TeamNames>, Problem> {
        let shared = self.shared.clone();
        let names = move || {
            let teams = shared.teams()?;
            Ok::<_, ReportError>(shared.name_cache.of(&shared.place(), &teams, &shared.live.name_files()))
        };
        on_thread(names).await
    }

    /// The current snapshot of `teams`.
    pub async fn snapshot(&self, teams: Vec<TeamId>) -> Result<Arc<ViewData>, Problem> {
        check_together(&teams)?;
        let shared = self.shared.clone();
        on_thread(move || shared.snapshot(&teams)).await
    }

    /// A snapshot of some teams, with local copies of the files that `sql` may need.
    pub async fn pinned(&self, teams: Vec<TeamId>, sql: &str) -> Result<PinnedSnapshot, Problem> {
        let (snapshot, sql) = (self.snapshot(teams).await?, sql.to_owned());
        on_thread(move || PinnedSnapshot::of(snapshot, &sql)).await
    }

    /// Runs `question` over `teams` within `time`. The question uses no more than `needs`.
    ///
    /// # Errors
    /// When too many queries run, when it takes too long; the errors of the question.
    pub async fn ask<T: Send + 'static>(
        &self,
        teams: Vec<TeamId>,
        needs: Needs,
        time: Duration,
        question: impl Fn(&mut Engine) -> Result<T, ReportError> + Send + 'static,
    ) -> Result<T, Problem> {
        check_together(&teams)?;
        let (turn, left) = self.queue.turn(self.clock.as_ref(), time).await?;
        let stop = StopOnDrop { stop: Arc::default(), clock: self.clock.clone() };
        let (shared, theirs) = (self.shared.clone(), stop.stop.clone());
        let job = on_thread(move || {
            let _ending = QueryGuard { stop: &theirs, _turn: turn };
            shared.answer((&teams, &needs), &theirs, &question)
        });
        tokio::select! {
            answer = job => answer,
            () = self.clock.sleep(left) => Err(Problem::too_long(time.as_secs())),
        }
    }
}

/// # Errors
/// When there are more teams than one query may cover.
pub fn check_together(teams: &[TeamId]) -> Result<(), Problem> {
    let (count, max) = (teams.len(), TEAMS_TOGETHER_MAX);
    if count > max {
        return Err(Problem::bad(format!(
            "the archive has {count} teams, but one query covers at most {max}: name a team"
        )));
    }
    Ok(())
}

/// Does work that blocks on a thread of its own.
pub async fn on_thread<T: Send + 'static, E: Into<Problem> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| broken())?.map_err(Into::into)
}

/// The problem of a task that panicked.
pub fn broken() -> Problem {
    tracing::error!("BUG: the task of a query panicked");
    Problem::failed("the query failed: the log has the cause")
}

impl Shared {
    fn teams(&self) -> Result<Vec<TeamId>, ReportError> {
        let committed = self.live.seqs().into_iter().filter(|(_, seq)| seq.0 > 0).map(|(team, _)| team);
        let now = self.clock.monotonic();
        let is_current = |at: Duration| self.live.shard().is_whole() || now.saturating_sub(at) < SNAPSHOT_AGE_MAX;
        if let Some((_, teams)) = self.kept.lock().teams.as_mut().filter(|(at, _)| is_current(*at)) {
            for team in committed {
                if let Err(at) = teams.binary_search(&team) {
                    teams.insert(at, team);
                }
            }
            return Ok(teams.clone());
        }
        let mut teams = self.place().teams()?;
        teams.sort_unstable();
        self.kept.lock().teams = Some((now, teams.clone()));
        Ok(teams)
    }

    fn place(&self) -> Arc<SnapshotSource> {
        self.place.lock().clone()
    }

    fn answer<T>(
        &self,
        (teams, needs): (&[TeamId], &Needs),
        stop: &Stop,
        question: &impl Fn(&mut Engine) -> Result<T, ReportError>,
    ) -> Result<T, ReportError> {
        let data = self.snapshot(teams)?;
        let mut engine = self.engine(teams, needs, &data)?;
        stop.watch(engine.interrupter());
        if stop.is_asked() {
            return Err(ReportError::Interrupted);
        }
        let answer = question(&mut engine)?;
        self.return_engine(teams, needs, &data, engine);
        Ok(answer)
    }

    /// A snapshot that includes all commits of this daemon.
    fn snapshot(&self, teams: &[TeamId]) -> Result<Arc<ViewData>, ReportError> {
        if let Some(data) = self.cached_snapshot(teams)? {
            return Ok(data);
        }
        let _one = self.reading.lock();
        if let Some(data) = self.cached_snapshot(teams)? {
            return Ok(data);
        }
        let now = self.clock.monotonic();
        let (data, extents) = self.place().snapshot(teams, |team, snapshot| self.live.with_state(team, snapshot))?;
        let data = Arc::new(data);
        let mut kept = self.kept.lock();
        kept.snapshots.retain(|snapshot| snapshot.teams != teams);
        if kept.snapshots.len() >= SNAPSHOTS_KEPT_MAX {
            kept.snapshots.remove(0);
        }
        kept.snapshots.push(CachedSnapshot {
            teams: teams.to_vec(),
            at: now,
            data: data.clone(),
            extents,
            idle: Vec::new(),
        });
        Ok(data)
    }

    /// The cached snapshot, if it is still current. An old one is current while its ledgers have not grown.
    fn cached_snapshot(&self, teams: &[TeamId]) -> Result<Option<Arc<ViewData>>, ReportError> {
        let (now, seqs) = (self.clock.monotonic(), self.live.seqs());
        let cached = {
            let mut kept = self.kept.lock();
            kept.snapshots.retain(|snapshot| snapshot.holds(&seqs));
            let cached = kept.snapshots.iter().find(|snapshot| snapshot.teams == teams);
            cached.map(|snapshot| (snapshot.data.clone(), snapshot.at, snapshot.extents.clone()))
        };
        let Some((data, at, extents)) = cached else { return Ok(None) };
        if now.saturating_sub(at) < SNAPSHOT_AGE_MAX {
            return Ok(Some(data));
        }
        let is_current = extents == self.place().extents(teams)?;
        let mut kept = self.kept.lock();
        match kept.of(teams, &data) {
            Some(snapshot) if is_current => snapshot.at = now,
            Some(_) => kept.snapshots.retain(|snapshot| !Arc::ptr_eq(&snapshot.data, &data)),
            None => {}
        }
        Ok(is_current.then_some(data))
    }

    fn engine(&self, teams: &[TeamId], needs: &Needs, data: &Arc<ViewData>) -> Result<Engine, ReportError> {
        if let Some(snapshot) = self.kept.lock().of(teams, data)
            && let Some(at) = snapshot.idle.iter().position(|(known, _)| known == needs)
        {
            return Ok(snapshot.idle.swap_remove(at).1);
        }
        let limits = self.limits.lock().clone();
        Engine::open_needed(data, needs, &limits)?.confined()
    }

    fn return_engine(&self, teams: &[TeamId], needs: &Needs, data: &Arc<ViewData>, engine: Engine) {
        if let Some(snapshot) = self.kept.lock().of(teams, data) {
            if snapshot.idle.len() >= IDLE_MAX {
                snapshot.idle.remove(0);
            }
            snapshot.idle.push((needs.clone(), engine));
        }
    }
}

impl CachedSnapshot {
    /// Whether the daemon knows no later commit.
    fn holds(&self, seqs: &BTreeMap<TeamId, LedgerSeq>) -> bool {
        self.data.teams.iter().all(|team| seqs.get(&team.team_id).is_none_or(|seq| *seq <= team.seq))
    }
}

impl QueryCache {
    fn of(&mut self, teams: &[TeamId], data: &Arc<ViewData>) -> Option<&mut CachedSnapshot> {
        self.snapshots.iter_mut().find(|snapshot| snapshot.teams == teams && Arc::ptr_eq(&snapshot.data, data))
    }
}

/// Asks a query to stop.
#[derive(Default)]
struct Stop {
    asked: AtomicBool,
    ended: AtomicBool,
    interrupter: Mutex<Option<Interrupter>>,
}

impl Stop {
    fn watch(&self, interrupter: Interrupter) {
        *self.interrupter.lock() = Some(interrupter);
    }

    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}

/// Frees the place of a query when it ends in any way.
struct QueryGuard<'a> {
    stop: &'a Stop,
    _turn: QueryPermit,
}

impl Drop for QueryGuard<'_> {
    fn drop(&mut self) {
        self.stop.ended.store(true, Ordering::Release);
    }
}

/// Stops the query when its client has disconnected or its time is over.
struct StopOnDrop {
    stop: Arc<Stop>,
    clock: Arc<dyn Clock>,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if self.stop.ended.load(Ordering::Acquire) {
            return;
        }
        self.stop.asked.store(true, Ordering::Release);
        let (stop, clock) = (self.stop.clone(), self.clock.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            while !stop.ended.load(Ordering::Acquire) {
                if let Some(interrupter) = &*stop.interrupter.lock() {
                    interrupter.interrupt();
                }
                clock.sleep(STOP_EVERY).await;
            }
        });
    }
}

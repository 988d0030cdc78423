//! Shared parts of the benchmarks: a sandbox, its client, a backfill into a temporary directory, and output.

#![allow(dead_code, reason = "each benchmark uses a part")]

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[path = "../../src/allocator.rs"]
mod allocator;

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use annals::api::{
    Answer, BillingSnapshot, Computers, EventSource, HttpOptions, HttpSource, Page, PageComparison, PageQuery,
    RetryPolicy, Retrying, TeamView, TokenSource,
};
use annals::archive::Archive;
use annals::clock::{Clock, SystemClock};
use annals::model::{Instant, Stream, TeamId};
use annals::pipeline::{CommitCounts, Edges, NoProgress, Settings, Workers};
use annals::sandbox::{RunningSandbox, Sandbox, SandboxConfig};
use annals::store::LocalStore;
use bytes::Bytes;
use tempfile::TempDir;

pub type Failure = Box<dyn std::error::Error>;

/// About how many events one connection makes.
const EVENTS_A_SESSION: f64 = 3.466;
/// The time of the last event.
pub const END: &str = "2026-11-20T00:00:00Z";

/// A sandbox of one team, and the client of it.
pub struct World {
    pub sandbox: RunningSandbox,
    pub http: Arc<HttpSource>,
    pub clock: Arc<SystemClock>,
    since: Instant,
}

/// An archived team.
pub struct Backfill {
    pub directory: TempDir,
    pub archive: Archive,
    pub committed: CommitCounts,
    pub took: Took,
    /// The requests, in order.
    pub pages: Vec<PageQuery>,
}

impl World {
    /// About `events` connection events, spread over `days` days.
    pub async fn start(events: u32, days: u32) -> Result<Self, Failure> {
        Self::of_teams(1, events, days).await
    }

    /// The same for several teams, with about this many events each.
    pub async fn of_teams(teams: u32, events: u32, days: u32) -> Result<Self, Failure> {
        let end: Instant = END.parse()?;
        let sandbox = Sandbox::start(SandboxConfig { teams, ..config(events, days, end) }).await?;
        let token = TokenSource::Fixed(sandbox.read_only_token.clone().into());
        let options = HttpOptions { requests_per_second: None, ..HttpOptions::new(&sandbox.base_url, token) };
        let since = end.minus(Duration::from_secs(u64::from(days) * 86_400));
        Ok(Self { sandbox, http: Arc::new(HttpSource::new(options)?), clock: Arc::new(SystemClock::new()), since })
    }

    pub fn team(&self) -> &TeamId {
        &self.sandbox.teams[0]
    }

    pub fn events(&self) -> u64 {
        let each = self.sandbox.teams.iter().map(|team| self.sandbox.handle.visible(team, Stream::Connections));
        each.sum()
    }

    pub fn settings(&self) -> Settings {
        Settings { since: Some(self.since), streams: vec![Stream::Connections], ..Settings::default() }
    }

    /// Runs the real pipeline on a new directory: reads, confirms and commits everything, and seals complete months.
    pub async fn backfill(&self) -> Result<Backfill, Failure> {
        let directory = tempfile::tempdir()?;
        let archive = Archive::open_or_create(Arc::new(LocalStore::new(directory.path())), || "bench".to_owned())?;
        let recorder = Arc::new(Recorder { source: self.http.clone(), pages: Mutex::default() });
        let source: Arc<dyn EventSource> = recorder.clone();
        let edges = Edges {
            source: Arc::new(Retrying::new(source, self.clock.clone(), RetryPolicy::default())),
            archive: Arc::new(archive.clone()),
            clock: self.clock.clone(),
            settings: Arc::new(self.settings()),
            workers: Workers::Threads,
            progress: Arc::new(NoProgress),
        };
        let began = Began::now(&self.clock);
        let round = edges.read_once().await?;
        let took = began.took();
        if !round.is_done() {
            return Err(format!("the round was not done: {:?}", round.teams).into());
        }
        let committed = round.committed();
        if committed.rows != self.events() {
            return Err(format!("{} rows of {} events", committed.rows, self.events()).into());
        }
        let pages = std::mem::take(&mut *recorder.pages.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Backfill { directory, archive, committed, took, pages })
    }
}

/// How many connections a day make about `events` events in `days` days.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rough size")]
pub fn sessions_per_day(events: u32, days: u32) -> u32 {
    (f64::from(events) / f64::from(days) / EVENTS_A_SESSION) as u32
}

fn config(events: u32, days: u32, end: Instant) -> SandboxConfig {
    let sessions_per_day = sessions_per_day(events, days);
    SandboxConfig { teams: 1, days, sessions_per_day, now: Some(end), end: Some(end), ..SandboxConfig::default() }
}

/// Passes everything on, and records the requested pages.
struct Recorder {
    source: Arc<HttpSource>,
    pages: Mutex<Vec<PageQuery>>,
}

impl Recorder {
    fn record(&self, query: &PageQuery) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).push(query.clone());
    }
}

impl EventSource for Recorder {
    fn teams(&self) -> Answer<'_, Vec<TeamId>> {
        self.source.teams()
    }

    fn team<'a>(&'a self, team: &'a TeamId) -> Answer<'a, TeamView> {
        self.source.team(team)
    }

    fn devices<'a>(&'a self, team: &'a TeamId) -> Answer<'a, Computers> {
        self.source.devices(team)
    }

    fn page<'a>(&'a self, team: &'a TeamId, query: &'a PageQuery) -> Answer<'a, Page> {
        Box::pin(async move {
            let served = self.source.page(team, query).await?;
            self.record(query);
            Ok(served)
        })
    }

    fn page_again<'a>(
        &'a self,
        team: &'a TeamId,
        query: &'a PageQuery,
        former: &'a Bytes,
    ) -> Answer<'a, PageComparison> {
        Box::pin(async move {
            let served = self.source.page_again(team, query, former).await?;
            self.record(query);
            Ok(served)
        })
    }

    fn billing<'a>(&'a self, team: &'a TeamId) -> Answer<'a, BillingSnapshot> {
        self.source.billing(team)
    }
}

/// Whether the flag stands on the command line.
pub fn has_flag(flag: &str) -> bool {
    std::env::args().any(|argument| argument == flag)
}

/// The text after a flag on the command line.
pub fn text(flag: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != flag).nth(1)
}

/// The number after a flag on the command line, else `default`.
pub fn number(flag: &str, default: u32) -> Result<u32, Failure> {
    let mut arguments = std::env::args().skip_while(|argument| argument != flag).skip(1);
    Ok(arguments.next().map_or(Ok(default), |text| text.parse())?)
}

/// Processor seconds and wall seconds of this process.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Took {
    pub wall: f64,
    /// The processor time of all threads, to a hundredth of a second; 0 if the system does not show it.
    pub processor: f64,
}

/// The start of a measurement.
pub struct Began {
    clock: Arc<SystemClock>,
    at: Duration,
    processor: f64,
}

impl Began {
    pub fn now(clock: &Arc<SystemClock>) -> Self {
        Self { clock: clock.clone(), at: clock.monotonic(), processor: processor_seconds() }
    }

    pub fn took(&self) -> Took {
        let wall = (self.clock.monotonic() - self.at).as_secs_f64();
        Took { wall, processor: processor_seconds() - self.processor }
    }
}

/// The process's user and system time, which Linux counts in hundredths of a second; 0 on other systems.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The median by wall time.
pub fn median(mut times: Vec<Took>) -> Took {
    times.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    times[times.len() / 2]
}

/// Prints one line: the name, the measured value, the required value and the goal.
pub fn print_ratio(what: &str, measured: f64, required: impl Display, goal: impl Display) {
    println!("{what:<58} {measured:>8.2}   required {required}, goal {goal}");
}

/// An archive of this many teams with this many events each, and the guard of its directory. Uses the archive in `kept` if there
/// is one, and keeps a new archive there.
pub async fn kept_archive(
    (teams, events, days): (u32, u32, u32),
    kept: Option<PathBuf>,
) -> Result<(PathBuf, Option<TempDir>), Failure> {
    if let Some(place) = kept.as_ref().filter(|place| place.join("archive.json").is_file()) {
        return Ok((place.clone(), None));
    }
    let backfill = World::of_teams(teams, events, days).await?.backfill().await?;
    let place = backfill.directory.path().to_owned();
    if let Some(kept) = kept {
        std::fs::rename(backfill.directory.keep(), &kept)?;
        return Ok((kept, None));
    }
    Ok((place, Some(backfill.directory)))
}

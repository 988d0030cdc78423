//! Runs one world from its first to its last day: starts and kills processes, and checks the laws all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use annals::api::{EventSource, RetryPolicy, Retrying};
use annals::archive::{Archive, WindowState};
use annals::clock::Clock;
use annals::daemon::{Daemon, DaemonCommand, Live};
use annals::model::{Instant, Stream, TeamId};
use annals::pipeline::{Edges, ExpirySettings, NoProgress, Settings, Workers};
use annals::store::{Listed, MemoryStore, Store};
use futures::FutureExt;
use futures::channel::mpsc;
use futures::future::join;

use super::clock::SimClock;
use super::erasure;
use super::faults::{Coverage, Fault};
use super::oracle;
use super::plan::{End, Plan, ProcessPlan};
use super::privacy::ColumnsOnly;
use super::retention::{self, HoldLines};
use super::service::Service;
use super::stalls::Meanwhile;
use super::store::{Disk, SimStore};
use super::trace::Trace;

/// Seconds until a process that ended by itself starts again, as in the systemd unit of `deploy/`.
const RESTART: i64 = 10;

/// A broken law.
#[derive(Debug, Clone)]
pub struct Broken {
    pub seed: u64,
    pub laws: Vec<String>,
    pub trace: String,
}

/// The result of a world.
pub struct Outcome {
    pub coverage: Coverage,
    pub files: MemoryStore,
    pub requests: u64,
}

pub struct Run {
    pub plan: Arc<Plan>,
    pub clock: Arc<SimClock>,
    pub service: Arc<Service>,
    pub disk: Arc<Disk>,
    pub files: MemoryStore,
    pub broken: Vec<String>,
    /// The windows that were settled when a process ended.
    settled: BTreeSet<(TeamId, Stream, Instant)>,
    /// The ledger heads when a process ended.
    heads: BTreeMap<TeamId, u64>,
    /// The ledgers after the last process.
    ledgers: Vec<Listed>,
    /// The lines of the planned hold.
    pub held: HoldLines,
    /// How often the planned order was given.
    pub orders_given: u32,
    pub columns_only: ColumnsOnly,
}

/// Runs the world of a seed.
///
/// # Errors
/// The broken laws.
pub fn run(seed: u64, days: i64, is_traced: bool) -> Result<Outcome, Broken> {
    run_with(seed, days, is_traced, None)
}

/// Runs the world of a seed with these faults.
///
/// # Errors
/// The broken laws.
pub fn run_with(seed: u64, days: i64, is_traced: bool, only: Option<&[Fault]>) -> Result<Outcome, Broken> {
    let plan = Arc::new(Plan::of(seed, days, only));
    let trace = Arc::new(Trace::new(is_traced));
    let shown = Arc::clone(&trace);
    let done = std::panic::catch_unwind(AssertUnwindSafe(move || {
        let mut run = Run::new(plan, trace);
        run.live();
        run.finish()
    }));
    let laws = match done {
        Ok((laws, outcome)) if laws.is_empty() => return Ok(outcome),
        Ok((laws, _)) => laws,
        Err(panic) => vec![format!("a panic: {}", message(&*panic))],
    };
    Err(Broken { seed, laws, trace: shown.text() })
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without words").to_owned()
}

impl Run {
    fn new(plan: Arc<Plan>, trace: Arc<Trace>) -> Self {
        let seed = plan.seed;
        trace.note(Instant::from_seconds(plan.start), || {
            format!("faults {:?}, polls every {} s", plan.faults, plan.poll)
        });
        let second = Duration::from_secs((plan.poll / 20).clamp(1, 60).unsigned_abs());
        let clock = SimClock::new(Instant::from_seconds(plan.start), plan.clock_steps.clone(), seed, second);
        let clock = Arc::new(clock);
        let service = Arc::new(Service::new(plan.clone(), clock.clone(), trace.clone()));
        let disk = Disk::new(plan.clone(), clock.clone(), trace);
        let (broken, settled, heads, ledgers) = (Vec::new(), BTreeSet::new(), BTreeMap::new(), Vec::new());
        Self {
            plan,
            clock,
            service,
            disk,
            files: MemoryStore::new(),
            broken,
            settled,
            heads,
            ledgers,
            held: HoldLines::default(),
            orders_given: 0,
            columns_only: ColumnsOnly::default(),
        }
    }

    /// All processes, one after another.
    fn live(&mut self) {
        let mut lives = self.plan.lives.clone();
        lives.push(ProcessPlan { until: self.plan.end, end: End::Stopped, fault: None, down: 0 });
        for life in lives {
            let mut ended = false;
            while !ended {
                if let End::PowerLost { verb, after, is_torn } = life.end
                    && self.clock.truth().seconds() >= life.until
                {
                    self.disk.inner().deadly = Some((verb, after, is_torn));
                }
                ended = self.process(&life);
                self.after_process();
                retention::act(self);
                erasure::act(self);
                if self.clock.truth().seconds() > self.plan.end {
                    ended = true;
                } else {
                    self.wait(if ended { life.down } else { RESTART });
                }
            }
        }
    }

    fn wait(&self, seconds: i64) {
        self.clock.base.run(self.clock.sleep(Duration::from_secs(seconds.unsigned_abs())));
    }

    /// Runs one process. Returns whether it ended in the planned way.
    fn process(&mut self, life: &ProcessPlan) -> bool {
        let now = self.clock.truth();
        self.columns_only.begin(self.plan.settings_at(now.seconds()).privacy, now);
        let run: &Run = self;
        let done = std::panic::catch_unwind(AssertUnwindSafe(|| run.one_process(life)));
        match done {
            Ok(ended) => {
                if let Some(fault) = life.fault.filter(|_| ended) {
                    self.disk.inner().coverage.fault(fault, self.plan.seed);
                }
                ended
            }
            Err(panic) if message(&*panic) == "a planted panic" => false,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    fn one_process(&self, life: &ProcessPlan) -> bool {
        let store: Arc<dyn Store> = Arc::new(SimStore { disk: self.disk.clone(), files: self.files.clone() });
        self.disk.trace.note(self.clock.truth(), || format!("a process begins, until {life:?}"));
        let Ok(archive) = Archive::open_or_create(store, || "simulated".to_owned()) else {
            let is_dead = self.disk.inner().is_dead;
            return is_dead;
        };
        let clock = Arc::clone(&self.clock);
        let archive = archive.with_random(Arc::new(move || clock.random()));
        let archive = Arc::new(archive.snapshots_every(self.plan.snapshot_lines).with_grace(self.plan.grace));
        let (classes, schedule) = (retention::classes(&self.plan), self.plan.schedule.retention.clone());
        let retention = ExpirySettings::of(classes, schedule);
        let settings = Settings { retention, ..self.plan.settings_at(self.clock.truth().seconds()) };
        let source = self.source(self.service.clone());
        let edges = edges(source, archive.clone(), self.clock.clone(), Arc::new(settings));
        self.disk.inner().stalls.meanwhile = Some(self.meanwhile());
        let live = Arc::new(Live::default());
        let (commands, received) = mpsc::unbounded();
        let daemon = Daemon::new(edges, self.plan.schedule.clone(), live, self.plan.seed);
        let others = join(self.others(archive.clone(), commands.clone()), self.slow_readers(archive)).map(|_| ());
        let end = self.end(life, commands);
        let (daemon, others) = (Box::pin(daemon.run(received)), Box::pin(others.fuse()));
        let lived = ProcessRun { daemon, others, end: Box::pin(end), disk: &self.disk };
        let ended = self.clock.base.run(lived);
        self.disk.trace.note(self.clock.truth(), || format!("the process ends: {ended:?}"));
        match ended {
            Ended::Stopped | Ended::Killed => !matches!(life.end, End::PowerLost { .. }),
            Ended::Died => true,
        }
    }

    fn source(&self, service: Arc<Service>) -> Arc<dyn EventSource> {
        let policy = RetryPolicy::default();
        Arc::new(Retrying::new(service, self.clock.clone(), policy))
    }

    /// Starts second pollers, and sends orders to the daemon.
    async fn others(&self, archive: Arc<Archive>, commands: mpsc::UnboundedSender<DaemonCommand>) {
        let mut times: Vec<(i64, bool)> = self.plan.pollers.iter().map(|at| (*at, true)).collect();
        times.extend(self.plan.rotations.iter().map(|at| (*at, false)));
        times.sort_unstable();
        for (at, is_poller) in times {
            let now = self.clock.truth().seconds();
            if at < now {
                continue;
            }
            self.clock.sleep(Duration::from_secs((at - now).unsigned_abs())).await;
            if !is_poller {
                let _ = commands.unbounded_send(DaemonCommand::TokenChanged);
                continue;
            }
            self.disk.inner().coverage.fault(Fault::SecondPoller, self.plan.seed);
            let settings = Arc::new(self.plan.settings_at(at));
            let _ = self.edges(archive.clone(), settings).read_once().await;
        }
    }

    pub fn edges(&self, archive: Arc<Archive>, settings: Arc<Settings>) -> Edges {
        let source = self.source(Arc::new(self.service.of_another_process()));
        edges(source, archive, self.clock.clone(), settings)
    }

    /// Another process that reads everything once, commits and vacuums, while a writer of this process stalls.
    fn meanwhile(&self) -> Meanwhile {
        let (clock, service, grace) = (self.clock.clone(), self.service.clone(), self.plan.grace);
        let settings = Arc::new(self.plan.settings_at(clock.truth().seconds()));
        let source = self.source(Arc::new(self.service.of_another_process()));
        let store = SimStore { disk: self.disk.clone(), files: self.files.clone() };
        Arc::new(move |seconds| {
            let wait = |seconds: i64| clock.base.run(clock.base.sleep(Duration::from_secs(seconds.unsigned_abs())));
            wait(seconds / 2);
            // This process does not know which readings the stalled one has not committed yet.
            service.inner().seen.trouble(clock.truth());
            if let Ok(archive) = Archive::open(Arc::new(store.clone())).map(|archive| archive.with_grace(grace)) {
                let edges = edges(source.clone(), Arc::new(archive.clone()), clock.clone(), settings.clone());
                let _ = clock.base.run(edges.read_once());
                for team in archive.teams().unwrap_or_default() {
                    let _ = archive.writer(&team).and_then(|mut writer| writer.vacuum(clock.now()));
                }
            }
            wait(seconds - seconds / 2);
            // The commit can fail: then nothing records its readings.
            service.inner().seen.trouble(clock.truth());
        })
    }

    /// Waits for the end of the process. Returns whether it was killed.
    async fn end(&self, life: &ProcessPlan, commands: mpsc::UnboundedSender<DaemonCommand>) -> bool {
        let now = self.clock.truth().seconds();
        self.clock.sleep(Duration::from_secs((life.until - now).max(0).unsigned_abs())).await;
        match life.end {
            End::Killed => true,
            End::Stopped => {
                let _ = commands.unbounded_send(DaemonCommand::Stop);
                std::future::pending().await
            }
            End::PowerLost { verb, after, is_torn } => {
                if !self.disk.inner().is_dead {
                    self.disk.inner().deadly = Some((verb, after, is_torn));
                }
                // A process that no longer writes gets the order to stop.
                self.clock.sleep(Duration::from_secs(3 * 86_400)).await;
                self.disk.inner().is_dead = true;
                true
            }
        }
    }

    /// Checks the disk after a process ended.
    fn after_process(&mut self) {
        self.files = self.files.snapshot();
        let now = self.clock.truth();
        {
            let mut disk = self.disk.inner();
            (disk.deadly, disk.is_dead) = (None, false);
            // It holds the disk, which would never be freed.
            disk.stalls.meanwhile = None;
            let mut inner = self.service.inner();
            inner.seen.forget();
            inner.seen.trouble(now);
        }
        let broken = self.disk.check(&self.files);
        self.broken.extend(broken);
        // Acknowledged lines stay: a ledger that has not grown has the same content.
        let ledgers = self.files.list("ledger").expect("memory can be listed");
        if std::mem::replace(&mut self.ledgers, ledgers) == self.ledgers {
            return;
        }
        self.disk.check_readers(&self.files, None);
        let Ok(archive) = Archive::open(Arc::new(self.files.clone())) else { return };
        for team in archive.teams().unwrap_or_default() {
            let reader = match archive.read(&team) {
                Ok(reader) => reader,
                Err(error) => {
                    self.broken.push(format!("I6: after a process's end {team} cannot be read: {error}"));
                    continue;
                }
            };
            let state = reader.state();
            let last = self.heads.insert(team.clone(), state.seq.0).unwrap_or(0);
            if state.seq.0 < last {
                self.broken.push(format!("I6: {team} was at {last}, but now is at {}", state.seq));
            }
            let is_settled = |key: &(TeamId, Stream, Instant)| {
                key.0 != team || state.windows.get(&(key.1, key.2)).is_some_and(|w| w.state != WindowState::Provisional)
            };
            if let Some(lost) = self.settled.iter().find(|key| !is_settled(key)) {
                self.broken.push(format!("I7: {lost:?} was settled"));
            }
            let settled = state.windows.iter().filter(|(_, window)| window.state != WindowState::Provisional);
            self.settled.extend(settled.map(|((stream, start), _)| (team.clone(), *stream, *start)));
        }
    }

    fn finish(mut self) -> (Vec<String>, Outcome) {
        let laws = oracle::check(&mut self);
        let (service, disk) = (self.service.inner(), self.disk.inner());
        let mut coverage = service.coverage.clone();
        coverage.add(&disk.coverage);
        if self.plan.clock_steps.iter().any(|(_, offset)| *offset != 0) {
            coverage.fault(Fault::ClockStep, self.plan.seed);
        }
        let requests = service.seen.requests;
        drop((service, disk));
        (laws, Outcome { coverage, files: self.files, requests })
    }
}

fn edges(source: Arc<dyn EventSource>, archive: Arc<Archive>, clock: Arc<SimClock>, settings: Arc<Settings>) -> Edges {
    Edges { source, archive, clock, settings, workers: Workers::Inline, progress: Arc::new(NoProgress) }
}

#[derive(Debug)]
enum Ended {
    Stopped,
    Killed,
    Died,
}

/// A process and its planned end. The run checks for the end after every step.
struct ProcessRun<'a, D, O, E> {
    daemon: Pin<Box<D>>,
    others: Pin<Box<O>>,
    end: Pin<Box<E>>,
    disk: &'a Disk,
}

impl<D: Future<Output = ()>, O: Future<Output = ()>, E: Future<Output = bool>> Future for ProcessRun<'_, D, O, E> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        if self.end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ended::Killed);
        }
        let is_stopped = self.daemon.as_mut().poll(cx).is_ready();
        if self.disk.inner().is_dead {
            return Poll::Ready(Ended::Died);
        }
        if is_stopped {
            return Poll::Ready(Ended::Stopped);
        }
        let _ = self.others.as_mut().poll(cx);
        Poll::Pending
    }
}

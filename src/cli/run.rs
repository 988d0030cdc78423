//! `annals run`: the daemon.

mod detect;
mod lock;
mod publish;
mod reload;
mod service_manager;
mod signals;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures::channel::mpsc::{self, UnboundedSender};
use parking_lot::{Mutex, RwLock};
use tokio::task::JoinHandle;

use crate::alert::{RunningWatch, SentLog, Watch};
use crate::api::{CurrentToken, EventSource, HttpSource, Pause, RequestCounts, RetryPolicy, Retrying};
use crate::archive::Archive;
use crate::clock::Clock;
use crate::config::{Config, Cron, TeamMetrics};
use crate::daemon::{Daemon, DaemonCommand, Live};
use crate::error::{Error, Exit};
use crate::lake::Catalog;
use crate::model::{Digest, Instant, Location, Shard};
use crate::pipeline::{Edges, ExpirySettings};
use crate::report::Limits;
use crate::web::{AppState, Guard, Metrics, Port, QueryService, Settings, SignIns, Visitors};

use super::public_key::expected_keys;
use super::report::CatalogArgs;
use super::{Global, global, limits, output, query, reading};
use detect::Detector;
use publish::Schedule;
use service_manager::{notify, notify_watchdog};
use signals::{SignalRequest, Signals};

/// The daemon retries for a shorter time than `sync`: its schedule tries again, and other teams wait.
const RETRY_ATTEMPTS: u32 = 4;
const RETRY_TOTAL: Duration = Duration::from_secs(15);
const RETRY_DEMANDED_MAX: Duration = Duration::from_secs(30);
/// The interval at which the daemon checks the token's file for a change.
const TOKEN_CHECK_EVERY: Duration = Duration::from_secs(2);
/// After the loop ends, a running commit has this long to finish.
const COMMIT_GRACE: Duration = Duration::from_secs(5);
/// After a stop, the delivery of an alert has this long to end.
const DELIVERY_GRACE: Duration = Duration::from_secs(4);
/// After a sleep of the machine or a change of its clock, a schedule continues within this time.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// Memory of each engine that serves the page, unless configured.
const PAGE_MEMORY_MIB: u32 = 512;

/// Run the daemon: it reads on a schedule, re-scans and seals, and serves health, metrics and the page on one port
///
/// The page is at http.listen, by default http://127.0.0.1:9464/. It shows the state of every stream, the coverage, sessions,
/// reports and findings. docs/api.md in the sources describes the JSON API under /api/.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    catalog: CatalogArgs,
    /// Whether /metrics has series for each team: auto (up to 100 teams), true or false
    #[arg(long, env = "ANNALS_TEAM_METRICS", value_name = "WHEN")]
    team_metrics: Option<TeamMetrics>,
}

pub fn run(global: &Global, args: &RunArgs) -> Result<Exit, Error> {
    let runtime = super::runtime()?;
    let ended = runtime.block_on(serve(global.clone(), args.clone()));
    // Do not wait for work on other threads. If this interrupts a commit, the next start finishes or drops it.
    runtime.shutdown_timeout(COMMIT_GRACE);
    ended.map(|()| Exit::Done)
}

/// The token in use. A reload of the configuration can replace its source.
type SharedToken = Arc<Mutex<CurrentToken>>;

/// Everything that survives a reload of the configuration.
struct Running {
    global: Global,
    args: RunArgs,
    clock: Arc<dyn Clock>,
    started: Instant,
    live: Arc<Live>,
    counts: Arc<RequestCounts>,
    pause: Arc<Pause>,
    metrics: Arc<Metrics>,
    config: Config,
    archive: Arc<Archive>,
    catalog: Arc<Catalog>,
    token: SharedToken,
    port: Option<Port>,
    sent_alerts: PathBuf,
    watch: Option<RunningWatch>,
    detecting: Option<JoinHandle<()>>,
    publishing: Option<JoinHandle<()>>,
    commands: UnboundedSender<DaemonCommand>,
}

async fn serve(global: Global, args: RunArgs) -> Result<(), Error> {
    // A SIGHUP during the start reloads after it. The signals to stop end the program at once until tasks can begin.
    let hangup = signals::hangup()?;
    let config = global.load()?;
    args.catalog.load(&config)?;
    let guard = Guard::new(&config.http).map_err(|error| Error::Usage(error.to_string()))?;
    let clock = reading::clock();
    let counts = Arc::<RequestCounts>::default();
    let pause = Arc::new(Pause::new(clock.clone()));
    let live = Arc::new(Live::new(counts.clone(), config.shard));
    let (commands, orders) = mpsc::unbounded();
    let metrics = Arc::new(Metrics::new());
    let (source, token) = service(&config, &clock, &counts, &pause)?;
    let token = Arc::new(Mutex::new(token));
    let place = query::archive_place(&config)?;
    let signer = reading::signer(&config)?;
    let mut archive = reading::archive(&place, config.grace_at(&place.data), &clock)?.with_signer(signer);
    archive.checks.keys = expected_keys(&config)?;
    let archive = Arc::new(archive);
    let sent_alerts = sent_alerts(&config, config.shard, &place.data, archive.id());
    let _lock = lock::take(&archive, config.shard)?;
    let mut running = Running {
        global,
        args,
        started: clock.now(),
        clock,
        live,
        counts,
        pause,
        metrics,
        config,
        archive: archive.clone(),
        catalog: Arc::new(Catalog::new(archive.clone())),
        token,
        port: None,
        sent_alerts,
        watch: None,
        detecting: None,
        publishing: None,
        commands,
    };
    let watch = running.watch(&running.config)?;
    let publishing = Schedule::of(&running, &running.config)?;
    running.port = Some(running.open_port(&running.config, guard).await?);
    let signals = Signals::new(hangup)?;
    let schedule = running.config.schedule.clone();
    let seed = running.clock.random();
    let edges = running.edges(&running.config, source);
    let daemon = Daemon::new(edges, schedule, running.live.clone(), seed);
    running.watch = Some(watch.start(None));
    running.detecting = Some(tokio::spawn(running.detector(&running.config).run()));
    running.publishing = Some(tokio::spawn(publishing.run()));
    running.say_ready(&place.to_string());
    tokio::spawn(watch_token(running.token.clone(), running.clock.clone(), running.commands.clone()));
    tokio::spawn(notify_watchdog(running.live.clone(), running.clock.clone()));
    let handled = tokio::spawn(running.handle_signals(signals));
    daemon.run(orders).await;
    let _ = handled.await;
    tracing::info!("stopped");
    Ok(())
}

/// The path of the file with the sent alerts. A local archive keeps the file beside its locks. For a bucket, the file is in the cache's
/// folder, and its name includes the archive's id, because two endpoints can have the same bucket address.
fn sent_alerts(config: &Config, shard: Shard, location: &Location, archive_id: &str) -> PathBuf {
    match location {
        Location::Local(root) => root.join(lock::sent_alerts(shard)),
        Location::Bucket(bucket) => {
            let archive = Digest::of(format!("{bucket}\n{archive_id}").as_bytes()).short();
            config.cache.directory.join(format!("{archive}-{}", lock::sent_alerts(shard).replace('/', "-")))
        }
    }
}

/// Removes the detections from the lists of sent alerts on this machine: see [`SentLog::forget_detections`].
pub fn forget_detections(config: &Config, archive: &Archive) -> Result<(), Error> {
    let whole = sent_alerts(config, Shard::WHOLE, &query::location(config)?, archive.id());
    let failed = |path: &Path| {
        let what = format!("cannot remove detections from {} (if it is damaged, delete it)", path.display());
        move |source| Error::io(what, source)
    };
    for path in SentLog::beside(&whole).map_err(failed(&whole))? {
        let mut log = SentLog::read(&path).map_err(failed(&path))?;
        if log.forget_detections() {
            log.write(&path).map_err(failed(&path))?;
        }
    }
    Ok(())
}

impl Running {
    /// The edges of the daemon's runs. They expire rows that are older than their retention class.
    fn edges(&self, config: &Config, source: Arc<dyn EventSource>) -> Edges {
        let mut settings = reading::settings(config);
        settings.retention = ExpirySettings::of(config.retention.clone(), config.schedule.retention.clone());
        reading::edges(source, self.archive.clone(), self.clock.clone(), settings, self.metrics.clone())
    }

    /// The alert task, as configured.
    fn watch(&self, config: &Config) -> Result<Watch, Error> {
        let clock = (self.clock.clone(), self.started);
        let watch = Watch::new(self.live.clone(), clock, config.alerts.clone(), self.sent_alerts.clone());
        watch.map_err(|error| Error::Usage(error.to_string()))
    }

    fn detector(&self, config: &Config) -> Detector {
        let (config, catalog) = (config.clone(), self.args.catalog.clone());
        Detector { config, catalog, live: self.live.clone(), clock: self.clock.clone() }
    }

    async fn open_port(&self, config: &Config, guard: Guard) -> Result<Port, Error> {
        let (live, clock, metrics) = (self.live.clone(), self.clock.clone(), self.metrics.clone());
        let source = query::snapshot_source(config, query::open(config)?)?;
        let (settings, limits) = page_settings(config, &self.args);
        let state = AppState {
            catalog: self.catalog.clone(),
            queries: QueryService::new(source, limits, live.clone(), clock.clone()),
            settings: RwLock::new(settings),
            visitors: Visitors::new(this_program()?),
            sign_ins: SignIns::default(),
            guard: RwLock::new(guard),
            live,
            clock,
            metrics,
        };
        let address = config.http.listen;
        let opened = Port::open(address, Arc::new(state)).await;
        opened.map_err(|source| Error::io(format!("cannot listen on {address} (http.listen)"), source))
    }

    fn say_ready(&self, root: &str) {
        let address = self.port.as_ref().map(|port| port.address.to_string()).unwrap_or_default();
        let page = format!("http://{address}/");
        let shard = self.config.shard.to_string();
        tracing::info!(archive = root, shard, listen = address, page, "ready");
        notify(&[sd_notify::NotifyState::Ready]);
    }

    /// Handles signals until one stops the daemon and the alert task has stopped.
    async fn handle_signals(mut self, mut signals: Signals) -> Self {
        while signals.next().await == SignalRequest::Reload {
            self.reload().await;
        }
        tracing::info!("stopping: a second signal stops the process at once");
        notify(&[sd_notify::NotifyState::Stopping]);
        let _ = self.commands.unbounded_send(DaemonCommand::Stop);
        tokio::spawn(end_at_second_signal(signals));
        if let Some(watch) = self.watch.take() {
            tokio::select! {
                () = watch.stop() => {}
                () = self.clock.sleep(DELIVERY_GRACE) => {}
            }
        }
        self
    }
}

async fn end_at_second_signal(mut signals: Signals) {
    while signals.next().await != SignalRequest::Stop {}
    output::say("annals: stopped at once by a second signal");
    std::process::exit(i32::from(Exit::Fault as u8));
}

/// The configured service, and its token.
fn service(
    config: &Config,
    clock: &Arc<dyn Clock>,
    counts: &Arc<RequestCounts>,
    pause: &Arc<Pause>,
) -> Result<(Arc<dyn EventSource>, CurrentToken), Error> {
    let http = HttpSource::new(global::http_options(config)?)?.with_pause(pause.clone());
    let token = http.token();
    let policy = RetryPolicy {
        attempts_max: RETRY_ATTEMPTS,
        total_max: RETRY_TOTAL,
        demanded_max: RETRY_DEMANDED_MAX,
        ..RetryPolicy::default()
    };
    let source = Retrying::sharing(Arc::new(http), clock.clone(), policy, counts.clone(), pause.clone());
    Ok((Arc::new(source), token))
}

/// Waits for the first moment of the schedule after `since`, and returns the time then. `None` if there is no such moment.
async fn next_run(schedule: &Cron, mut since: Instant, clock: &dyn Clock) -> Option<Instant> {
    loop {
        let now = clock.now();
        let at = schedule.next_since(&mut since, now)?;
        if at <= now {
            return Some(now);
        }
        clock.sleep(at.since(now).min(SLEEP_MAX)).await;
    }
}

/// This program's path, even after an upgrade replaced its file.
fn this_program() -> Result<PathBuf, Error> {
    let running = PathBuf::from("/proc/self/exe");
    if running.try_exists().is_ok_and(|is_there| is_there) {
        return Ok(running);
    }
    std::env::current_exe().map_err(|source| Error::io("cannot find this program", source))
}

fn page_settings(config: &Config, args: &RunArgs) -> (Settings, Limits) {
    let memory_mib = config.sql.memory_mib.unwrap_or(PAGE_MEMORY_MIB);
    let limits = Limits { memory_mib, ..limits::limits(config) };
    let settings = Settings {
        queries: args.catalog.folder(config).cloned(),
        sql: config.http.sql,
        sql_time: config.http.sql_time,
        team_metrics: args.team_metrics.unwrap_or(config.http.team_metrics),
        time_left: config.alerts.time_left,
    };
    (settings, limits)
}

/// Checks the token's file, and starts to use a changed token. Keeps only a digest of the token.
async fn watch_token(token: SharedToken, clock: Arc<dyn Clock>, commands: UnboundedSender<DaemonCommand>) {
    let current = || token.lock().clone();
    let mut known = current().fingerprint();
    loop {
        clock.sleep(TOKEN_CHECK_EVERY).await;
        let now = current().fingerprint();
        if now.is_some() && now != known {
            known = now;
            current().renew();
            if commands.unbounded_send(DaemonCommand::TokenChanged).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_with_one_address_at_two_endpoints_have_a_list_of_sent_alerts_each() {
        let config = Config::of_text(Path::new("annals.toml"), "archive = \"s3://bucket/x\"\n").unwrap();
        let list = |id| sent_alerts(&config, Shard::WHOLE, &config.archive, id);
        assert_ne!(list("a"), list("b"));
        assert_eq!(list("a"), list("a"));
    }
}

//! Alerts: the events that deserve one, the targets, and a record so that each alert is sent once.
//!
//! [`occurrences`] finds everything to alert about in the daemon's state. [`SentLog`] records what was sent. A failed delivery is
//! repeated until it succeeds.

mod deliver;
mod occurrence;
mod sent_log;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::config::Alerts;
use crate::daemon::{Live, LiveSnapshot};
use crate::model::Instant;

pub use deliver::{DeliveryError, Target, check_program, targets};
pub use occurrence::{AlertState, Occurrence, Since, occurrences, test_alert};
pub use sent_log::SentLog;

/// The interval at which the state is checked.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// The pause after a failed delivery; it grows with each failure.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(600);
/// Maximum number of alerts to one target in one check: the others wait for the next check.
const AT_ONCE_MAX: usize = 20;

/// Watches the daemon and sends alerts until it is stopped.
pub struct Watch {
    live: Arc<Live>,
    clock: Arc<dyn Clock>,
    /// The start of the process: a reload of the configuration makes a new watch, and no stream less late.
    started: Instant,
    config: Alerts,
    targets: Vec<Waiting>,
    sent_log: SentLog,
    path: PathBuf,
}

/// A watch that runs as a task.
pub struct RunningWatch {
    task: JoinHandle<()>,
    stop: Sender<bool>,
}

impl RunningWatch {
    /// Stops the watch, and waits until the delivery that has begun is recorded: else the alert would arrive twice.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let _ = self.task.await;
    }
}

struct Waiting {
    target: Target,
    failures: u32,
    /// By the monotonic clock.
    not_before: Duration,
    /// The keys of alerts that the target refused, although it takes others: they are sent after the others.
    refused: BTreeSet<String>,
}

impl Waiting {
    fn of(target: Target) -> Self {
        Self { target, failures: 0, not_before: Duration::ZERO, refused: BTreeSet::new() }
    }
}

impl Watch {
    /// `path` is the file of sent alerts, and `started` the start of the process.
    ///
    /// # Errors
    /// When the configuration of a target is invalid.
    pub fn new(
        live: Arc<Live>,
        (clock, started): (Arc<dyn Clock>, Instant),
        config: Alerts,
        path: PathBuf,
    ) -> Result<Self, DeliveryError> {
        let targets = [Target::Log].into_iter().chain(targets(&config)?);
        let sent_log = SentLog::default();
        Ok(Self { live, clock, started, config, targets: targets.map(Waiting::of).collect(), sent_log, path })
    }

    fn state(&mut self, snapshot: &LiveSnapshot) -> AlertState {
        let now = self.clock.now();
        let late = self.live.late(now);
        // The clock can be set back.
        self.started = self.started.min(now);
        occurrences(snapshot, late.as_deref(), &self.config, Since { started: self.started, now })
    }

    /// Starts the task, which stops the former watch first: both write the record of sent alerts.
    pub fn start(self, former: Option<RunningWatch>) -> RunningWatch {
        let (stop, stopped) = channel(false);
        let task = tokio::spawn(async move {
            if let Some(former) = former {
                former.stop().await;
            }
            self.run(stopped).await;
        });
        RunningWatch { task, stop }
    }

    async fn run(mut self, mut stopped: Receiver<bool>) {
        self.begin();
        loop {
            tokio::select! {
                _ = stopped.changed() => return,
                () = self.clock.sleep(CHECK_EVERY) => {}
            }
            let snapshot = self.live.snapshot();
            let state = self.state(&snapshot);
            if self.sent_log.verified != snapshot.verified {
                self.sent_log.verified = snapshot.verified;
                save(&self.sent_log, &self.path);
            }
            self.deliver_due(&state, &stopped).await;
        }
    }

    /// Reads the record of sent alerts, and records the time from which new targets receive alerts. An unreadable record is replaced,
    /// with a log message.
    fn begin(&mut self) {
        let shard = self.live.shard();
        self.sent_log = SentLog::read_or_inherit(&self.path, |team| shard.owns(team)).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the record of sent alerts: all current gaps count as sent");
            SentLog::default()
        });
        self.live.recall_check(self.sent_log.verified.clone());
        let (mut is_new, now) = (false, self.clock.now());
        for waiting in &self.targets {
            is_new |= self.sent_log.of(waiting.target.name()).begin(now);
        }
        if is_new {
            save(&self.sent_log, &self.path);
        }
    }

    async fn deliver_due(&mut self, state: &AlertState, stopped: &Receiver<bool>) {
        let mut has_settled = false;
        for waiting in &mut self.targets {
            let name = waiting.target.name();
            has_settled |= self.sent_log.of(name).settle(state);
            if self.clock.monotonic() < waiting.not_before {
                continue;
            }
            let mut due = self.sent_log.of(name).unsent(state);
            waiting.refused.retain(|key| due.iter().any(|occurrence| occurrence.key == *key));
            due.sort_by_key(|occurrence| waiting.refused.contains(&occurrence.key));
            let mut has_failed = false;
            for occurrence in due.iter().take(AT_ONCE_MAX) {
                if *stopped.borrow() {
                    break;
                }
                match waiting.target.deliver(occurrence, self.clock.as_ref()).await {
                    Ok(()) => {
                        self.live.count_alert(name, "delivered");
                        if !matches!(waiting.target, Target::Log) {
                            let (rule, key) = (occurrence.rule.as_str(), &occurrence.key);
                            tracing::info!(to = name, rule, key, "delivered an alert");
                        }
                        self.sent_log.of(name).note(occurrence, state);
                        // Save each arrival at once: the process can end during the next delivery.
                        save(&self.sent_log, &self.path);
                    }
                    Err(error) => {
                        self.live.count_alert(name, "failed");
                        has_failed = true;
                        tracing::warn!(to = name, key = occurrence.key, %error, "an alert did not arrive: the daemon sends it again");
                        if !error.is_of_one_alert() {
                            break;
                        }
                        waiting.refused.insert(occurrence.key.clone());
                    }
                }
            }
            waiting.failures = if has_failed { waiting.failures + 1 } else { 0 };
            if has_failed {
                let wait = RETRY_FIRST.saturating_mul(1 << waiting.failures.min(10)).min(RETRY_MAX);
                waiting.not_before = self.clock.monotonic() + wait;
            }
        }
        if has_settled {
            save(&self.sent_log, &self.path);
        }
    }
}

/// Saves the record of sent alerts.
fn save(sent_log: &SentLog, path: &Path) {
    if let Err(error) = sent_log.write(path) {
        tracing::warn!(%error, "cannot write the record of sent alerts: after a restart, alerts of gaps that did not arrive are lost, and others come again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::config::Config;
    use crate::model::{LedgerSeq, TeamId};

    /// A watch whose only other target is a shell program, and its directory.
    fn watch(program: &str) -> (Watch, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let program = program.replace("DIR", &directory.path().display().to_string());
        let text = format!("[alerts]\ncommand = [\"/bin/sh\", \"-c\", '''{program}''']\n");
        let config = Config::of_text(Path::new("annals.toml"), &text).unwrap().alerts;
        let (live, clock) = (Arc::new(Live::default()), Arc::new(SystemClock::new()));
        let started = clock.now();
        let watch = Watch::new(live, (clock, started), config, directory.path().join("sent.json")).unwrap();
        (watch, directory)
    }

    /// A state in which a ledger recorded these occurrences after the process started.
    fn recorded(keys: &[String]) -> AlertState {
        let (team, mut state) = (TeamId::from("t"), AlertState::default());
        state.opened_at.insert(team.clone(), LedgerSeq(1));
        for (at, key) in keys.iter().enumerate() {
            let occurrence = Occurrence { key: key.clone(), ..test_alert(Instant::from_seconds(1_800_000_000)) };
            state.recorded.push((team.clone(), LedgerSeq(2 + at as u64), occurrence));
        }
        state
    }

    #[tokio::test]
    async fn an_arrival_is_on_disk_before_the_next_delivery_begins() {
        let (mut watch, directory) = watch("cp DIR/sent.json DIR/seen.json; cat > DIR/last");
        watch.targets.remove(0);
        watch.deliver_due(&recorded(&["first".to_owned(), "second".to_owned()]), &channel(false).1).await;
        let seen = std::fs::read_to_string(directory.path().join("seen.json")).unwrap();
        assert!(seen.contains("first") && !seen.contains("second"), "{seen}");
    }

    #[test]
    fn a_new_target_receives_alerts_of_all_that_is_found_from_its_first_start_on() {
        let (mut watch, _directory) = watch("exit 0");
        watch.begin();
        let since = SentLog::read(&watch.path).unwrap();
        assert_ne!(since, SentLog::default(), "a crash of this process loses nothing");
        watch.sent_log = SentLog::default();
        watch.begin();
        assert_eq!(watch.sent_log, since, "a restart does not change the time");
    }

    #[test]
    fn a_new_watch_counts_lateness_from_the_start_of_the_process() {
        let (mut watch, _directory) = watch("exit 0");
        let nothing = LiveSnapshot::default();
        assert_eq!(watch.state(&nothing).firing.len(), 0, "the daemon does not know the teams yet");
        watch.started = watch.started.minus(watch.config.stale);
        assert_eq!(watch.state(&nothing).firing.len(), 1, "the configuration was loaded again since the start");
    }

    #[tokio::test]
    async fn a_refused_alert_blocks_no_other_alert_of_its_target() {
        let (mut watch, directory) = watch("tee -a DIR/taken | (! grep -q refused)");
        let mut keys: Vec<String> = (0..AT_ONCE_MAX).map(|n| format!("refused-{n}")).collect();
        keys.push("taken".to_owned());
        let state = recorded(&keys);
        watch.deliver_due(&state, &channel(false).1).await;
        let failures = |watch: &Watch| watch.targets[1].failures;
        assert_eq!(failures(&watch), 1, "the whole pass failed once");
        watch.targets[1].not_before = Duration::ZERO;
        watch.deliver_due(&state, &channel(false).1).await;
        assert_eq!(failures(&watch), 2, "the refused alerts failed again");
        let taken = std::fs::read_to_string(directory.path().join("taken")).unwrap();
        assert!(taken.contains("\"key\":\"taken\""), "{taken}");
        assert!(watch.sent_log.of("command").unsent(&state).iter().all(|left| left.key.starts_with("refused")));
    }

    #[tokio::test]
    async fn a_target_that_cannot_be_reached_is_tried_once() {
        let (mut watch, directory) = watch("exit 0");
        watch.targets[1].target = Target::Command(vec![directory.path().join("absent").display().to_string()]);
        let state = recorded(&["a".to_owned(), "b".to_owned()]);
        watch.deliver_due(&state, &channel(false).1).await;
        let counts = watch.live.snapshot().alerts;
        assert_eq!(counts[&("command", "failed")], 1);
    }
}

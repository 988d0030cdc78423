//! Alerts: the events that deserve one, the targets, and a record so that each alert is sent once.
//!
//! [`occurrences`] finds everything to alert about in the daemon's state. [`SentLog`] records what was sent. A failed delivery is
//! repeated until it succeeds.

mod deliver;
mod sent_log;
mod occurrence;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::config::Alerts;
use crate::daemon::Live;

pub use deliver::{DeliveryError, Target, targets};
pub use occurrence::{AlertState, Occurrence, Since, occurrences, test_alert};
pub use sent_log::SentLog;

/// The interval at which the state is checked.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// The pause after a failed delivery; it grows with each failure.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(600);
/// Maximum number of alerts to one target in one check: the others wait for the next check.
const AT_ONCE_MAX: usize = 20;

/// Watches the daemon and sends alerts until the process ends.
pub struct Watch {
    live: Arc<Live>,
    clock: Arc<dyn Clock>,
    config: Alerts,
    targets: Vec<Waiting>,
    sent_log: SentLog,
    path: PathBuf,
}

struct Waiting {
    target: Target,
    failures: u32,
    /// By the monotonic clock.
    not_before: Duration,
}

impl Watch {
    /// `path` is the file of sent alerts. An unreadable file is replaced, with a log message.
    ///
    /// # Errors
    /// When the configuration of a target is invalid.
    pub fn new(live: Arc<Live>, clock: Arc<dyn Clock>, config: Alerts, path: PathBuf) -> Result<Self, DeliveryError> {
        let targets = [Target::Log].into_iter().chain(targets(&config)?);
        let targets = targets.map(|target| Waiting { target, failures: 0, not_before: Duration::ZERO });
        let sent_log = SentLog::read(&path).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the record of sent alerts: all current gaps count as sent");
            SentLog::default()
        });
        Ok(Self { live, clock, config, targets: targets.collect(), sent_log, path })
    }

    /// Checks and alerts forever.
    pub async fn run(mut self) {
        let started = self.clock.now();
        loop {
            self.clock.sleep(CHECK_EVERY).await;
            let now = self.clock.now();
            let (snapshot, late) = (self.live.snapshot(), self.live.late(now));
            let since = Since { started, now };
            let state = occurrences(&snapshot, late.as_deref(), &self.config, since);
            self.deliver_due(&state).await;
        }
    }

    async fn deliver_due(&mut self, state: &AlertState) {
        let mut has_changed = false;
        for waiting in &mut self.targets {
            let name = waiting.target.name();
            has_changed |= self.sent_log.of(name).settle(state);
            if self.clock.monotonic() < waiting.not_before {
                continue;
            }
            let due: Vec<Occurrence> = self.sent_log.of(name).unsent(state).into_iter().take(AT_ONCE_MAX).collect();
            for occurrence in &due {
                match waiting.target.deliver(occurrence, self.clock.as_ref()).await {
                    Ok(()) => {
                        self.live.count_alert(name, "delivered");
                        if !matches!(waiting.target, Target::Log) {
                            let (rule, key) = (occurrence.rule.as_str(), &occurrence.key);
                            tracing::info!(to = name, rule, key, "delivered an alert");
                        }
                        (waiting.failures, has_changed) = (0, true);
                        self.sent_log.of(name).note(occurrence, state);
                    }
                    Err(error) => {
                        self.live.count_alert(name, "failed");
                        waiting.failures += 1;
                        let wait = RETRY_FIRST.saturating_mul(1 << waiting.failures.min(10)).min(RETRY_MAX);
                        waiting.not_before = self.clock.monotonic() + wait;
                        tracing::warn!(to = name, %error, seconds = wait.as_secs(), "an alert did not arrive: the daemon sends it again");
                        break;
                    }
                }
            }
        }
        if has_changed && let Err(error) = self.sent_log.write(&self.path) {
            tracing::warn!(%error, "cannot write the record of sent alerts: after a restart the daemon sends them again");
        }
    }
}

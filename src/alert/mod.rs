//! Warnings: what is worth one, whom it goes to, and that it goes there once.
//!
//! [`occurrences`] decides what there is to warn of, from what the daemon shows. [`Memory`] knows what has been told. A
//! target that does not take a warning is tried again until it does.

mod deliver;
mod memory;
mod occurrence;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::config::Alerts;
use crate::pipeline::Live;

pub use deliver::{DeliveryError, Target, targets};
pub use memory::Memory;
pub use occurrence::{Occurrence, Since, Standing, occurrences, rehearsal};

/// The state is looked at so often.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// After a failed delivery a target is left alone for so long, and longer with each failure.
const RETRY_FIRST: Duration = Duration::from_secs(5);
const RETRY_MAX: Duration = Duration::from_secs(600);
/// Warnings that one look sends to one target at most: the others wait for the next.
const AT_ONCE_MAX: usize = 20;

/// Watches the daemon and warns, as long as the process lives.
pub struct Watch {
    live: Arc<Live>,
    clock: Arc<dyn Clock>,
    config: Alerts,
    targets: Vec<Waiting>,
    memory: Memory,
    path: PathBuf,
}

struct Waiting {
    target: Target,
    failures: u32,
    /// By the monotonic clock.
    not_before: Duration,
}

impl Watch {
    /// `path`: where it is remembered what was told. A memory that cannot be read is begun anew, and said so.
    ///
    /// # Errors
    /// When a target cannot be made of what is configured.
    pub fn new(live: Arc<Live>, clock: Arc<dyn Clock>, config: Alerts, path: PathBuf) -> Result<Self, DeliveryError> {
        let targets = [Target::Log].into_iter().chain(targets(&config)?);
        let targets = targets.map(|target| Waiting { target, failures: 0, not_before: Duration::ZERO });
        let memory = Memory::read(&path).unwrap_or_else(|error| {
            tracing::warn!(%error, "what was warned of before cannot be read: standing gaps count as known");
            Memory::default()
        });
        Ok(Self { live, clock, config, targets: targets.collect(), memory, path })
    }

    /// Looks and warns for ever.
    pub async fn run(mut self) {
        let started = self.clock.now();
        loop {
            self.clock.sleep(LOOK_EVERY).await;
            let now = self.clock.now();
            let (shown, late) = (self.live.snapshot(), self.live.late(now));
            let since = Since { started, now };
            let standing = occurrences(&shown, late.as_deref(), &self.config, since);
            self.tell(&standing).await;
        }
    }

    async fn tell(&mut self, standing: &Standing) {
        let mut has_changed = false;
        for waiting in &mut self.targets {
            let name = waiting.target.name();
            has_changed |= self.memory.of(name).settle(standing);
            if self.clock.monotonic() < waiting.not_before {
                continue;
            }
            let due: Vec<Occurrence> = self.memory.of(name).untold(standing).into_iter().take(AT_ONCE_MAX).collect();
            for occurrence in &due {
                match waiting.target.deliver(occurrence, self.clock.as_ref()).await {
                    Ok(()) => {
                        self.live.count_alert(name, "delivered");
                        if !matches!(waiting.target, Target::Log) {
                            let (rule, key) = (occurrence.rule.as_str(), &occurrence.key);
                            tracing::info!(to = name, rule, key, "a warning was delivered");
                        }
                        (waiting.failures, has_changed) = (0, true);
                        self.memory.of(name).note(occurrence, standing);
                    }
                    Err(error) => {
                        self.live.count_alert(name, "failed");
                        waiting.failures += 1;
                        let wait = RETRY_FIRST.saturating_mul(1 << waiting.failures.min(10)).min(RETRY_MAX);
                        waiting.not_before = self.clock.monotonic() + wait;
                        tracing::warn!(to = name, %error, seconds = wait.as_secs(), "a warning did not arrive: it is sent again");
                        break;
                    }
                }
            }
        }
        if has_changed && let Err(error) = self.memory.write(&self.path) {
            tracing::warn!(%error, "what was warned of cannot be remembered: after a restart it is sent again");
        }
    }
}

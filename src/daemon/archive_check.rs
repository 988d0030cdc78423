//! The check of the whole archive, by schedule.

use std::time::Duration;

use crate::archive::{ArchiveError, FaultCode, verify};
use crate::config::Cron;
use crate::lake;
use crate::model::Instant;
use crate::pipeline::Edges;

use super::live::{Live, Verified};

/// A check that did not end is repeated after this time.
const RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// When the archive is checked next.
pub struct ArchiveCheck {
    cron: Cron,
    is_running: bool,
    /// The last check. The next one is at the first moment of the schedule after this.
    checked_at: Instant,
    /// When to repeat a check that did not end, by the monotonic clock.
    retry_at: Option<Duration>,
}

impl ArchiveCheck {
    pub fn new(cron: Cron, now: Instant) -> Self {
        Self { cron, is_running: false, checked_at: now, retry_at: None }
    }

    /// Applies a new schedule.
    pub fn reload(&mut self, cron: Cron, now: Instant) {
        (self.cron, self.checked_at) = (cron, now);
    }

    /// Whether a check is due. The caller then starts it, and passes its end to [`ArchiveCheck::ended`].
    pub fn starts(&mut self, now: Instant, monotonic: Duration) -> bool {
        let next = self.cron.next_since(&mut self.checked_at, now);
        let is_due = next.is_some_and(|at| at <= now) || self.retry_at.is_some_and(|at| at <= monotonic);
        if self.is_running || !is_due {
            return false;
        }
        (self.is_running, self.retry_at) = (true, None);
        true
    }

    /// A check that did not end says nothing about the archive: the last result stays.
    pub fn ended(&mut self, checked: Result<Verified, String>, now: Instant, monotonic: Duration, live: &Live) {
        (self.is_running, self.checked_at) = (false, now);
        match &checked {
            Err(error) => {
                tracing::error!(error, "the archive could not be checked: the daemon tries again in an hour");
                self.retry_at = Some(monotonic + RETRY_AFTER);
            }
            Ok(Verified { faults, named, .. }) => match named.first() {
                Some(first) => tracing::error!(faults, first, "the check of the archive found faults"),
                None => tracing::info!("the check of the whole archive found no fault"),
            },
        }
        live.change(|shown| {
            shown.check_error = checked.as_ref().err().cloned();
            shown.verified = checked.ok().or(shown.verified.take());
        });
    }
}

/// Checks the archive and its tables. Fails if the check did not end.
pub async fn check(edges: Edges) -> Result<Verified, String> {
    let archive = edges.archive.clone();
    let verify = move || {
        let mut report = verify(archive.store().as_ref(), &archive.checks)?;
        lake::verify_tables(&archive, &mut report);
        Ok::<_, ArchiveError>(report)
    };
    let report = edges.workers.run(verify).await;
    let at = edges.clock.now();
    match report {
        Ok(report) => {
            let unchecked = report.notices.iter().filter(|notice| notice.code == FaultCode::Rewritten);
            unchecked.for_each(|notice| tracing::warn!("verify of {}: {}", notice.object, notice.detail));
            let named = report.faults.iter().map(|fault| format!("{} {}", fault.code.into_str(), fault.object));
            Ok(Verified { at, faults: report.faults.len(), named: named.take(Verified::NAMED_MAX).collect() })
        }
        Err(error) if error.is_transient() => Err(error.to_string()),
        Err(error) => Ok(Verified { at, faults: 1, named: vec![error.to_string()] }),
    }
}

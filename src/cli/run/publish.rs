//! Publishes the open tables as scheduled.

use std::sync::Arc;

use crate::archive::Archive;
use crate::clock::Clock;
use crate::config::{Config, Cron};
use crate::daemon::Live;
use crate::error::Error;
use crate::lake::{Catalog, LakeError, Publisher, ReaderRoot, TableId};
use crate::model::Instant;

use super::super::publish::{existing, reader_root};
use super::{Running, next_run};

/// The parts that publishing needs.
pub struct Schedule {
    pub archive: Arc<Archive>,
    pub catalog: Arc<Catalog>,
    pub clock: Arc<dyn Clock>,
    pub live: Arc<Live>,
    /// When to publish, and for which address. `None`: nothing is published.
    pub publish: Option<(Cron, ReaderRoot)>,
    /// No table is published for the first time.
    pub only_existing: bool,
}

impl Schedule {
    /// As configured.
    pub fn of(running: &Running, config: &Config) -> Result<Self, Error> {
        let (archive, catalog) = (running.archive.clone(), running.catalog.clone());
        let (clock, live) = (running.clock.clone(), running.live.clone());
        // Vacuum keeps expired files while a table names them: after an expiry the daemon updates the tables that exist.
        let expiry = (!config.retention.is_empty()).then(|| config.schedule.retention.clone());
        let only_existing = config.publish.schedule.is_none();
        let publish = match (&config.publish.schedule, expiry) {
            (Some(cron), _) => Some((cron.clone(), reader_root(config)?)),
            // Without an address for readers, no table exists.
            (None, expiry) => expiry.zip(reader_root(config).ok()),
        };
        Ok(Self { archive, catalog, clock, live, publish, only_existing })
    }

    /// Publishes on schedule, without end. The next scheduled run repeats a failed one.
    pub async fn run(self) {
        let Some((cron, root)) = self.publish.clone() else { return };
        let schedule = Arc::new(self);
        let mut since = schedule.clock.now();
        while let Some(now) = next_run(&cron, since, schedule.clock.as_ref()).await {
            let (own, root) = (schedule.clone(), root.clone());
            let run = tokio::task::spawn_blocking(move || own.publish(root, now)).await;
            let error = match run {
                Ok(Ok(())) => None,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a publication failed: the next run tries again");
                    Some(error.to_string())
                }
                Err(error) => {
                    tracing::error!(%error, "BUG: publishing broke");
                    Some(format!("BUG: publishing broke: {error}"))
                }
            };
            schedule.live.publication_ended(schedule.clock.now(), error);
            since = schedule.clock.now();
        }
    }

    fn publish(&self, root: ReaderRoot, now: Instant) -> Result<(), LakeError> {
        let tables = if self.only_existing { existing(&self.archive)? } else { TableId::all() };
        let (published, ended) = Publisher::new(&self.archive, root).publish_each(&tables);
        for table in published.iter().filter(|table| table.is_new) {
            let (name, version) = (&table.table, table.version);
            tracing::info!(name, version, table.files_added, table.files_removed, table.rows, "published a table");
        }
        ended.and(self.catalog.refresh(now))
    }
}

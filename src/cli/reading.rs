//! What the verbs that read share: the edges of the world, put together from the configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{EventSource, HttpOptions, HttpSource, RetryPolicy, Retrying};
use crate::archive::{Archive, LocalStore};
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::error::Error;
use crate::model::WindowGrid;
use crate::pipeline::{Fleet, InventorySettings, Looks, Progress, Settings, Workers};

/// Bytes of an archive's id.
const ARCHIVE_ID_WORDS: usize = 2;
/// Between two questions about a user each: two a second.
const USER_INFO_PAUSE: Duration = Duration::from_millis(500);

pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// The service, with retries.
///
/// # Errors
/// When address or token cannot be used.
pub fn source(options: HttpOptions, clock: &Arc<dyn Clock>) -> Result<Arc<dyn EventSource>, Error> {
    let http: Arc<dyn EventSource> = Arc::new(HttpSource::new(options)?);
    Ok(Arc::new(Retrying::new(http, clock.clone(), RetryPolicy::default())))
}

/// The archive at `root`, made if there is none.
///
/// # Errors
/// When it cannot be opened or made.
pub fn archive(root: &Path, clock: &Arc<dyn Clock>) -> Result<Archive, Error> {
    let new_id = || (0..ARCHIVE_ID_WORDS).map(|_| format!("{:016x}", clock.random())).collect();
    Archive::open_or_create(Arc::new(LocalStore::new(root)), new_id)
        .map_err(|source| Error::ArchiveAt { root: root.to_owned(), source })
}

/// How to read, as configured; flags of the verb are set on top.
pub fn settings(config: &Config) -> Settings {
    Settings {
        grid: WindowGrid::new(config.windows.length),
        lag: config.windows.lag,
        rescan: config.windows.rescan.clone(),
        concurrency: config.concurrency.get(),
        teams: config.teams.clone(),
        inventory: looks(config),
        ..Settings::default()
    }
}

/// How people and computers are looked at, as configured.
fn looks(config: &Config) -> InventorySettings {
    // Users are asked about one by one: gently, unless nobody wants any limit.
    let user_info_pause = config.requests_per_second.map(|_| USER_INFO_PAUSE);
    let looks = if config.inventory.enabled { Looks::WhenDue } else { Looks::Never };
    InventorySettings { looks, user_info: config.inventory.user_info, user_info_pause }
}

pub fn fleet(
    source: Arc<dyn EventSource>,
    archive: Archive,
    clock: Arc<dyn Clock>,
    settings: Settings,
    progress: Arc<dyn Progress>,
) -> Fleet {
    let (archive, settings) = (Arc::new(archive), Arc::new(settings));
    Fleet { source, archive, clock, settings, workers: Workers::Threads, progress }
}

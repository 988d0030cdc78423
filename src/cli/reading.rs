//! What the verbs that read share: the edges of the world, put together from the configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{EventSource, HttpOptions, HttpSource, Listener, Notice, Pause, RetryPolicy, Retrying};
use crate::archive::{Archive, ArchiveError, SecretKey, Signer, Store, open_store, prove_store};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, readable_by_others};
use crate::error::Error;
use crate::files::{self, Links};
use crate::model::{Location, WindowGrid};
use crate::pipeline::{Fleet, InventorySettings, Progress, ScanMode, Settings, Workers};

use super::{global, output};

/// Bytes of an archive's id.
const ARCHIVE_ID_WORDS: usize = 2;
/// Of a private key's file.
const KEY_BYTES_MAX: u64 = 64 << 10;

pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// The service, with retries for a person who waits.
///
/// # Errors
/// When address or token cannot be used.
pub fn source(options: HttpOptions, clock: &Arc<dyn Clock>) -> Result<Arc<dyn EventSource>, Error> {
    retrying(options, RetryPolicy::default(), clock)
}

/// The service that is configured, with retries as configured.
///
/// # Errors
/// As [`source`], and when no address or no token is configured.
pub fn configured_source(config: &Config, clock: &Arc<dyn Clock>) -> Result<Arc<dyn EventSource>, Error> {
    retrying(global::http_options(config)?, RetryPolicy::within(config.retry_for), clock)
}

/// The service, asked once, for a person who waits.
///
/// # Errors
/// As [`source`].
pub fn source_without_retries(options: HttpOptions, clock: &Arc<dyn Clock>) -> Result<Arc<dyn EventSource>, Error> {
    retrying(options, RetryPolicy { attempts_max: 1, ..RetryPolicy::default() }, clock)
}

fn retrying(options: HttpOptions, policy: RetryPolicy, clock: &Arc<dyn Clock>) -> Result<Arc<dyn EventSource>, Error> {
    let pause = Arc::new(Pause::new(clock.clone()));
    let listener = speaker(options.base_url.clone());
    let http: Arc<dyn EventSource> = Arc::new(HttpSource::new(options)?.pausing(pause.clone()));
    let retrying = Retrying::sharing(http, clock.clone(), policy.for_a_person(), Arc::default(), pause);
    Ok(Arc::new(retrying.telling(listener)))
}

/// Says on standard error why nothing happens.
fn speaker(address: String) -> Listener {
    Arc::new(move |notice: Notice<'_>| match notice {
        Notice::NoAnswerYet => output::say(&format!("annals: no answer from {address} yet; still waiting")),
        Notice::TryingAgain { error, wait, within } => {
            let plan = match error.retry_after() {
                Some(_) => format!("trying again in {} s", wait.as_secs()),
                None => format!("trying again for up to {} s", within.as_secs()),
            };
            output::say(&format!("annals: {error}; {plan}"));
        }
    })
}

/// The archive at `location`, made if there is none.
///
/// # Errors
/// When it cannot be opened or made.
pub fn archive(location: &Location, grace: Duration, clock: &Arc<dyn Clock>) -> Result<Archive, Error> {
    let new_id = || (0..ARCHIVE_ID_WORDS).map(|_| format!("{:016x}", clock.random())).collect();
    let failed = |source| Error::ArchiveAt { location: location.to_string(), source };
    let store = open_store(location).map_err(ArchiveError::from)?;
    prove(store.clone(), location, clock)?;
    Archive::open_or_create(store, new_id).map(|archive| archive.keeping(grace)).map_err(failed)
}

/// Proves a bucket before the first archive in it is written: one that lets two writers win would fork the ledger.
///
/// # Errors
/// When the bucket cannot be reached, or is unfit.
pub fn prove(store: Arc<dyn Store>, location: &Location, clock: &Arc<dyn Clock>) -> Result<(), Error> {
    let Location::Bucket(bucket) = location else { return Ok(()) };
    if matches!(Archive::open(store), Err(ArchiveError::NotAnArchive)) {
        let proof = prove_store(bucket, clock.random(), clock.now());
        let proof = proof.map_err(|error| Error::ArchiveAt { location: location.to_string(), source: error.into() })?;
        tracing::info!(%bucket, %proof, "the store does what an archive rests on");
    }
    Ok(())
}

/// What signs the heads of commits, where a key is configured.
///
/// # Errors
/// When a key cannot be read.
pub fn signer(config: &Config) -> Result<Option<Arc<Signer>>, Error> {
    let signing = &config.signing;
    let Some(path) = &signing.key_file else { return Ok(None) };
    let key = secret_key("signing.key_file", path)?;
    let previous = signing.previous_key_file.as_deref();
    let previous = previous.map(|path| secret_key("signing.previous_key_file", path)).transpose()?;
    Ok(Some(Arc::new(Signer { key, previous })))
}

/// The private key of a file. A file that others can read is warned of.
///
/// # Errors
/// When it cannot be read, or holds none.
pub fn secret_key(place: &str, path: &Path) -> Result<SecretKey, Error> {
    let bad = |why: String| Error::Usage(format!("{place}: {}: {why}", path.display()));
    let text = files::read_text(path, Links::Follow, KEY_BYTES_MAX).map_err(|e| bad(format!("cannot be read: {e}")))?;
    if let Some(warning) = readable_by_others(path, "the signing key") {
        tracing::warn!("{warning}");
    }
    SecretKey::of_file(&text).map_err(|why| bad(format!("holds no private key: {why}")))
}

/// How to read, as configured; flags of the verb are set on top.
pub fn settings(config: &Config) -> Settings {
    Settings {
        grid: WindowGrid::new(config.windows.length),
        lag: config.windows.lag,
        rescan: config.windows.rescan.clone(),
        partition: config.windows.partition,
        concurrency: config.concurrency.get(),
        teams: config.teams.clone(),
        shard: config.shard,
        inventory: inventory_settings(config),
        commit_every: config.commit_every_at(&config.archive),
        ..Settings::default()
    }
}

/// How people and computers are looked at, as configured.
fn inventory_settings(config: &Config) -> InventorySettings {
    let scan = if config.inventory.enabled { ScanMode::WhenDue } else { ScanMode::Never };
    InventorySettings { scan, user_info: config.inventory.user_info }
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

//! Builds the clock, the event source, the archive and the settings from the configuration, for the verbs that read the service.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::api::{EventSource, HttpOptions, HttpSource, Listener, Notice, Pause, RetryPolicy, Retrying};
use crate::archive::{Archive, ArchiveError, SecretKey, Signer};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, readable_by_others};
use crate::error::Error;
use crate::files::{self, Links};
use crate::model::path::{LEDGER, LOCKS, MANIFEST, SALTS, SCRATCH, SNAPSHOTS, TABLES};
use crate::model::{ArchivePlace, BucketLocation, Location, WindowGrid};
use crate::pipeline::{Edges, InventorySettings, Progress, ScanMode, Settings, Workers};
use crate::store::{Store, foreign_name, open_store, test_bucket};

use super::{global, output};

/// Random words in an archive's id.
const ARCHIVE_ID_WORDS: usize = 2;
/// Names that a directory may hold before its first archive; a new file system has `lost+found`.
const NAMES_ALLOWED: [&str; 7] = [MANIFEST, LEDGER, TABLES, SALTS, SNAPSHOTS, LOCKS, "lost+found"];
/// The largest private key file.
const KEY_BYTES_MAX: u64 = 64 << 10;

pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// The service, with retries for a person who waits.
///
/// # Errors
/// When the address or the token is invalid.
pub fn source(options: HttpOptions, clock: &Arc<dyn Clock>) -> Result<Arc<dyn EventSource>, Error> {
    retrying(options, RetryPolicy::default(), clock)
}

/// The configured service, with the configured retries.
///
/// # Errors
/// As [`source`], and when no address or no token is configured.
pub fn configured_source(config: &Config, clock: &Arc<dyn Clock>) -> Result<Arc<dyn EventSource>, Error> {
    retrying(global::http_options(config)?, RetryPolicy::within(config.retry_for), clock)
}

/// The service without retries, for a person who waits.
///
/// # Errors
/// As [`source`].
pub fn source_without_retries(options: HttpOptions, clock: &Arc<dyn Clock>) -> Result<Arc<dyn EventSource>, Error> {
    retrying(options, RetryPolicy { attempts_max: 1, ..RetryPolicy::default() }, clock)
}

fn retrying(options: HttpOptions, policy: RetryPolicy, clock: &Arc<dyn Clock>) -> Result<Arc<dyn EventSource>, Error> {
    let pause = Arc::new(Pause::new(clock.clone()));
    let listener = wait_listener(options.base_url.clone());
    let http: Arc<dyn EventSource> = Arc::new(HttpSource::new(options)?.with_pause(pause.clone()));
    let retrying = Retrying::sharing(http, clock.clone(), policy.interactive(), Arc::default(), pause);
    Ok(Arc::new(retrying.with_listener(listener)))
}

/// Says on standard error why the program waits.
fn wait_listener(address: String) -> Listener {
    Arc::new(move |notice: Notice<'_>| match notice {
        Notice::NoAnswerYet => output::say(&format!("annals: {address} has not answered yet; still waiting")),
        Notice::TryingAgain { error, wait, within } => {
            let plan = match error.retry_after() {
                Some(_) => format!("trying again in {} s", wait.as_secs()),
                None => format!("trying again for up to {} s", within.as_secs()),
            };
            output::say(&format!("annals: {error}; {plan}"));
        }
    })
}

/// Opens the archive at `place`, and creates it if none exists.
///
/// # Errors
/// When the archive cannot be opened or created.
pub fn archive(place: &ArchivePlace, grace: Duration, clock: &Arc<dyn Clock>) -> Result<Archive, Error> {
    let new_id = || (0..ARCHIVE_ID_WORDS).map(|_| format!("{:016x}", clock.random())).collect();
    let failed = |source| Error::ArchiveAt { location: place.to_string(), source };
    let store = open_store(place).map_err(ArchiveError::from)?;
    test_new_places(store.clone(), place, clock)?;
    Archive::open_or_create(store, new_id).map(|archive| archive.with_grace(grace)).map_err(failed)
}

/// Tests the places of a new archive. A bucket that lets two writers win would fork the ledger; a directory must hold
/// nothing else.
///
/// # Errors
/// When a bucket cannot be reached, or fails the test; when a directory holds other files, or is inside an archive; when the
/// ledger's place holds an archive.
pub fn test_new_places(store: Arc<dyn Store>, place: &ArchivePlace, clock: &Arc<dyn Clock>) -> Result<(), Error> {
    let is_begun = match Archive::open(store) {
        Err(ArchiveError::NotAnArchive) => false,
        // A killed command has created the archive, but not yet its ledger.
        Err(ArchiveError::LedgerMissing) => true,
        _ => return Ok(()),
    };
    if !is_begun {
        test_place(&place.data, false, clock)?;
    }
    let Some(ledger) = &place.ledger else { return Ok(()) };
    let at_ledger = open_store(&ArchivePlace::whole(ledger.clone())).map_err(ArchiveError::from)?;
    match Archive::open(at_ledger.clone()) {
        // The next step says whose ledger this is, or that the archive's manifest is missing.
        Err(ArchiveError::NotAnArchive) if Archive::is_at(at_ledger.as_ref()) => Ok(()),
        Err(ArchiveError::NotAnArchive) => test_place(ledger, true, clock),
        Err(error @ ArchiveError::Store(_)) => Err(Error::ArchiveAt { location: ledger.to_string(), source: error }),
        _ => Err(Error::Usage(format!("{ledger}: an archive lies here: [store] ledger needs a place of its own"))),
    }
}

fn test_place(location: &Location, is_ledger: bool, clock: &Arc<dyn Clock>) -> Result<(), Error> {
    let bucket = match location {
        Location::Local(directory) => {
            return check_may_begin(directory).map_err(|why| Error::Usage(format!("{}: {why}", directory.display())));
        }
        Location::Bucket(bucket) => bucket,
    };
    for parent in bucket.parents() {
        let around = open_store(&ArchivePlace::whole(Location::Bucket(parent.clone()))).map_err(ArchiveError::from)?;
        if Archive::is_at(around.as_ref()) {
            return Err(Error::Usage(format!("{location}: {}", output::inside_archive(&parent))));
        }
    }
    check_empty_bucket(bucket)?.map_err(|why| Error::Usage(format!("{location}: {why}")))?;
    let test = test_bucket(bucket, is_ledger, clock.random(), clock.now());
    let test = test.map_err(|error| Error::ArchiveAt { location: location.to_string(), source: error.into() })?;
    tracing::info!(%bucket, %test, "the bucket passes every test of an archive's store");
    Ok(())
}

/// Whether a first sync may make an archive at a place in a bucket. A place around another archive holds that archive's directory.
fn check_empty_bucket(bucket: &BucketLocation) -> Result<Result<(), String>, Error> {
    let is_own = |name: &str| NAMES_ALLOWED.contains(&name) || name == SCRATCH;
    let foreign = foreign_name(bucket, is_own).map_err(ArchiveError::from)?;
    Ok(foreign.map_or(Ok(()), |name| {
        Err(format!("this place holds {name:?}: a new archive needs an empty place of its own"))
    }))
}

/// Checks whether a first sync may make an archive at `location`, for a command that needs an archive and finds none.
///
/// # Errors
/// A sentence about the place.
pub fn check_no_data(location: &Location) -> Result<(), String> {
    let directory = match location {
        Location::Local(directory) => directory,
        Location::Bucket(bucket) => return check_empty_bucket(bucket).unwrap_or_else(|error| Err(error.render(false))),
    };
    check_may_begin(directory)?;
    let has_files = |part: &&str| std::fs::read_dir(directory.join(part)).is_ok_and(|mut files| files.next().is_some());
    match [TABLES, LEDGER].into_iter().find(has_files) {
        Some(part) => Err(format!("archive.json is missing, but {part}/ holds data: restore that file from a back-up")),
        None => Ok(()),
    }
}

/// `verify` reports foreign files in an archive, and `vacuum` removes everything under `scratch/`. A killed first command can
/// leave `locks/` and `scratch/`; old data without a manifest is refused later, with its own message.
fn check_may_begin(directory: &Path) -> Result<(), String> {
    // The caller found no archive here; another first command can have made one since.
    output::check_outside_archives(&directory.join(".."))?;
    check_links(directory)?;
    if directory.is_file() {
        return Err("this is a file: an archive needs a directory".to_owned());
    }
    // A directory that does not exist yet is empty; the next step reports every other error.
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let is_begun = names.iter().any(|name| name == LOCKS);
    let is_own = |name: &str| NAMES_ALLOWED.contains(&name) || name == SCRATCH && is_begun;
    match names.iter().find(|name| !is_own(name)) {
        Some(name) => Err(format!("this directory holds {name:?}: a new archive needs an empty directory of its own")),
        None => Ok(()),
    }
}

/// Refuses a link that leads nowhere: the system's message would not name it.
fn check_links(path: &Path) -> Result<(), String> {
    for place in path.ancestors() {
        if let (Ok(target), Err(error)) = (std::fs::read_link(place), std::fs::metadata(place)) {
            let (place, target) = (place.display(), target.display());
            return Err(format!(
                "{place} is a symbolic link to {target}, which cannot be opened: {error}: make that directory, or correct the link"
            ));
        }
    }
    Ok(())
}

/// The key that signs the heads of commits, if one is configured.
///
/// # Errors
/// When a key cannot be read, or only the previous key is configured.
pub fn signer(config: &Config) -> Result<Option<Arc<Signer>>, Error> {
    signer_of(config, false)
}

/// Like [`signer`]; with `signs_all`, it signs every line that has no signature.
///
/// # Errors
/// As [`signer`].
pub fn signer_of(config: &Config, signs_all: bool) -> Result<Option<Arc<Signer>>, Error> {
    let key_of = |place, path: &Option<PathBuf>| path.as_deref().map(|path| secret_key(place, path)).transpose();
    let previous = key_of("signing.previous_key_file", &config.signing.previous_key_file)?;
    match (key_of("signing.key_file", &config.signing.key_file)?, previous) {
        (Some(key), previous) => Ok(Some(Arc::new(Signer { key, previous, signs_all }))),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::Usage(
            "signing.previous_key_file: this key only hands over to the key of signing.key_file, which is missing: name the new key there"
                .to_owned(),
        )),
    }
}

/// Reads a private key from a file. Logs a warning if other users can read the file.
///
/// # Errors
/// When the file cannot be read, or holds no key.
pub fn secret_key(place: &str, path: &Path) -> Result<SecretKey, Error> {
    let bad = |why: String| Error::Usage(format!("{place}: {}: {why}", path.display()));
    let text =
        files::read_text(path, Links::Follow, KEY_BYTES_MAX).map_err(|e| bad(format!("cannot read the key: {e}")))?;
    if let Some(warning) = readable_by_others(path, "the signing key") {
        tracing::warn!("{warning}");
    }
    SecretKey::of_file(&text).map_err(|why| bad(format!("the file holds no private key: {why}")))
}

/// The configured settings; the caller applies the verb's flags.
pub fn settings(config: &Config) -> Settings {
    Settings {
        grid: WindowGrid::new(config.windows.length),
        lag: config.windows.lag,
        rescan: config.windows.rescan.clone(),
        partition: config.windows.partition,
        concurrency: config.concurrency.get(),
        teams: config.teams.clone(),
        plan_span: config.plan_span,
        shard: config.shard,
        inventory: inventory_settings(config),
        privacy: config.privacy,
        commit_every: config.commit_interval(),
        ..Settings::default()
    }
}

/// The configured settings for people and computers.
fn inventory_settings(config: &Config) -> InventorySettings {
    let scan = if config.inventory.enabled { ScanMode::WhenDue } else { ScanMode::Never };
    InventorySettings { scan, user_info: config.inventory.user_info }
}

/// The edges of a command that reads teams, on many threads.
pub fn edges(
    source: Arc<dyn EventSource>,
    archive: impl Into<Arc<Archive>>,
    clock: Arc<dyn Clock>,
    settings: Settings,
    progress: Arc<dyn Progress>,
) -> Edges {
    let (archive, settings) = (archive.into(), Arc::new(settings));
    Edges { source, archive, clock, settings, workers: Workers::Threads, progress }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another first command can make the archive after this one found none.
    #[test]
    fn a_new_archive_is_refused_inside_an_archive_but_not_at_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let place = ArchivePlace::whole(Location::Local(directory.path().join("archive")));
        let grace = Duration::from_secs(86_400);
        let made = archive(&place, grace, &clock()).unwrap();
        let root = place.data.directory().unwrap();
        assert_eq!(check_may_begin(root), Ok(()));
        for inside in ["new", "locks", "tables/new"] {
            let refused = check_may_begin(&root.join(inside)).unwrap_err();
            assert!(refused.starts_with("this place is inside the archive at "), "{inside}: {refused}");
        }
        assert_eq!(archive(&place, grace, &clock()).unwrap().id(), made.id());
    }
}

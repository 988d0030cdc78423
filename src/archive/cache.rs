//! A local cache of an archive's files from a bucket, for the engine to read.
//!
//! A live file never changes, so the cache fetches it once, checks it against the ledger's hash, and shares it with all
//! processes of the machine. Eviction removes the least recently used file first. A query pins its files as hard links of its
//! own, so they remain readable after another process evicts them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::{NamedTempFile, TempDir};
use thiserror::Error;

use crate::files::if_exists;
use crate::model::{Digest, saturating_sum};
use crate::store::Store;
use crate::threads::each;

use super::copy::copy_checked;
use super::{ArchiveError, FileEntry};

const FILES: &str = "files";
const PINS: &str = "pins";
/// The process that evicts files holds this lock.
const LOCK: &str = "lock";
/// Number of parallel fetches.
const FETCHES_AT_ONCE: usize = 8;

#[derive(Debug, Error)]
pub enum CacheError {
    #[error(
        "the query needs {needed} bytes of files, but the cache holds only {limit}: query a shorter period, or raise [cache] size"
    )]
    TooSmall { needed: u64, limit: u64 },
    #[error(
        "{source}: the cache at {} is on a full disk, and the query needs {needed} bytes of files there ([cache] size allows {limit}): \
         free space, name a larger disk in [cache] directory, or query a shorter period",
        path.display()
    )]
    Full { path: PathBuf, needed: u64, limit: u64, source: io::Error },
    #[error("cache {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// Receives the bytes of each fetched file, and the bytes of all files that the query needs.
pub type FetchProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A local directory that processes share.
#[derive(Clone)]
pub struct Cache {
    directory: PathBuf,
    bytes_max: u64,
    progress: Option<FetchProgress>,
    is_checking: bool,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({}, {} bytes)", self.directory.display(), self.bytes_max)
    }
}

/// The size of a cache's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheExtent {
    pub files: u64,
    pub bytes: u64,
}

/// Files that stay readable until this is dropped.
#[derive(Debug)]
pub struct PinnedFiles {
    directory: TempDir,
    _lock: File,
}

impl PinnedFiles {
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn name_of(&self, file: &FileEntry) -> String {
        name_of(&file.sha256)
    }

    pub fn path_of(&self, file: &FileEntry) -> PathBuf {
        self.directory.path().join(self.name_of(file))
    }
}

fn name_of(sha256: &Digest) -> String {
    format!("{sha256}.parquet")
}

impl Cache {
    /// The cache in `directory`, which need not exist yet.
    pub fn new(directory: impl Into<PathBuf>, bytes_max: u64) -> Self {
        Self { directory: directory.into(), bytes_max, progress: None, is_checking: false }
    }

    /// Compares each cached file with the ledger's hash again, because this machine's disk can have altered it since the fetch.
    #[must_use]
    pub fn checking(self) -> Self {
        Self { is_checking: true, ..self }
    }

    #[must_use]
    pub fn with_progress(self, progress: FetchProgress) -> Self {
        Self { progress: Some(progress), ..self }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Holds the files. Only names that the cache gives are evicted: the directory can hold files of others.
    pub fn files_directory(&self) -> PathBuf {
        self.directory.join(FILES)
    }

    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    fn failed(&self) -> impl Fn(io::Error) -> CacheError + '_ {
        |source| CacheError::Io { path: self.directory.clone(), source }
    }

    /// Pins files, and fetches those that the cache lacks. On a full disk, all other cached files make room.
    ///
    /// # Errors
    /// [`CacheError::TooSmall`] before the first fetch; [`CacheError::Full`] when the disk has no room for the query's files alone;
    /// when the store fails, a file differs from the ledger, or this machine's disk fails.
    pub fn pin(&self, store: &dyn Store, files: &[FileEntry]) -> Result<PinnedFiles, CacheError> {
        let wanted: BTreeMap<Digest, &FileEntry> = files.iter().map(|file| (file.sha256, file)).collect();
        let needed = saturating_sum(wanted.values().map(|file| file.bytes));
        if needed > self.bytes_max {
            return Err(CacheError::TooSmall { needed, limit: self.bytes_max });
        }
        let pin_all = || {
            let pinned = self.begin_pin().map_err(self.failed())?;
            each(wanted.values(), FETCHES_AT_ONCE, |file| self.pin_one(store, file, &pinned, needed))?;
            Ok(pinned)
        };
        let pinned = pin_all().or_else(|error| match error {
            CacheError::Io { source, .. } if is_full(&source) => {
                self.keep_only(&wanted.keys().copied().collect())?;
                pin_all()
            }
            other => Err(other),
        });
        let pinned = pinned.map_err(|error| match error {
            CacheError::Io { path, source } if is_full(&source) => {
                CacheError::Full { path, needed, limit: self.bytes_max, source }
            }
            other => other,
        })?;
        self.make_room(self.bytes_max).map_err(self.failed())?;
        Ok(pinned)
    }

    fn begin_pin(&self) -> io::Result<PinnedFiles> {
        let pins = self.directory.join(PINS);
        fs::create_dir_all(self.files_directory())?;
        fs::create_dir_all(&pins)?;
        self.remove_stale_pins()?;
        let directory = tempfile::Builder::new().prefix("pin-").tempdir_in(&pins)?;
        // The lock file gets its name only while this process holds it. So a free lock belongs to a dead process.
        let begun = directory.path().join("begun");
        let lock = File::create(&begun)?;
        lock.try_lock()?;
        fs::rename(begun, directory.path().join(LOCK))?;
        Ok(PinnedFiles { directory, _lock: lock })
    }

    /// A killed process leaves its links, but holds no lock on them.
    fn remove_stale_pins(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.directory.join(PINS))? {
            let path = entry?.path();
            let is_abandoned = File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
            if is_abandoned {
                let _ = fs::remove_dir_all(path);
            }
        }
        Ok(())
    }

    fn pin_one(
        &self,
        store: &dyn Store,
        file: &FileEntry,
        pinned: &PinnedFiles,
        needed: u64,
    ) -> Result<(), CacheError> {
        let cached = self.files_directory().join(name_of(&file.sha256));
        let link = pinned.path_of(file);
        if if_exists(fs::hard_link(&cached, &link)).map_err(self.failed())?.is_some() {
            if self.is_whole(&link, file).map_err(self.failed())? {
                return touch(&link).map_err(self.failed());
            }
            // Somebody changed the cached file, or a disk lost its end.
            fs::remove_file(&link).map_err(self.failed())?;
            if_exists(fs::remove_file(&cached)).map_err(self.failed())?;
        }
        self.fetch(store, file, pinned, &cached)?;
        if let Some(progress) = &self.progress {
            progress(file.bytes, needed);
        }
        Ok(())
    }

    fn is_whole(&self, cached: &Path, file: &FileEntry) -> io::Result<bool> {
        Ok(fs::metadata(cached)?.len() == file.bytes
            && (!self.is_checking || Digest::of_reader(&mut File::open(cached)?)? == file.sha256))
    }

    /// Fetches a file into the pinned directory, and adds it to the cache if it agrees with the ledger. The pinned link survives an
    /// eviction by another process.
    fn fetch(&self, store: &dyn Store, file: &FileEntry, pinned: &PinnedFiles, place: &Path) -> Result<(), CacheError> {
        let mut kept = NamedTempFile::new_in(pinned.directory()).map_err(self.failed())?;
        copy_checked(store, file, &mut kept, self.failed())?;
        // After a loss of power, a named file must not be empty.
        kept.as_file().sync_data().map_err(self.failed())?;
        fs::hard_link(kept.path(), pinned.path_of(file)).map_err(self.failed())?;
        kept.persist(place).map_err(|e| self.failed()(e.error))?;
        Ok(())
    }

    /// Evicts the least recently used files until at most `bytes` remain. Returns at once if another process is evicting.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let lock = File::options().append(true).create(true).open(self.directory.join(LOCK))?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        let mut files = self.cached_files()?;
        files.sort_by_key(|(_, meta)| meta.modified().ok());
        let mut sum: u64 = files.iter().map(|(_, meta)| meta.len()).sum();
        for (path, meta) in files {
            if sum <= bytes {
                break;
            }
            if_exists(fs::remove_file(path))?;
            sum -= meta.len();
        }
        Ok(())
    }

    fn cached_files(&self) -> io::Result<Vec<(PathBuf, fs::Metadata)>> {
        let Some(entries) = if_exists(fs::read_dir(self.files_directory()))? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let meta = if_exists(entry.metadata())?.filter(|meta| meta.is_file() && is_own(&entry.file_name()));
            found.extend(meta.map(|meta| (entry.path(), meta)));
        }
        Ok(found)
    }

    pub fn extent(&self) -> Result<CacheExtent, CacheError> {
        let files = self.cached_files().map_err(self.failed())?;
        Ok(CacheExtent { files: files.len() as u64, bytes: files.iter().map(|(_, meta)| meta.len()).sum() })
    }

    /// Removes every cached file except these, and returns the number of removed files. Running queries keep their files.
    pub fn keep_only(&self, live: &BTreeSet<Digest>) -> Result<u64, CacheError> {
        let names: BTreeSet<String> = live.iter().map(name_of).collect();
        let is_live = |path: &Path| path.file_name().and_then(|name| name.to_str()).is_some_and(|n| names.contains(n));
        let files = self.cached_files().map_err(self.failed())?;
        let others: Vec<&PathBuf> = files.iter().map(|(path, _)| path).filter(|path| !is_live(path)).collect();
        others.iter().try_for_each(|path| if_exists(fs::remove_file(path)).map(drop)).map_err(self.failed())?;
        // The pins of a killed process.
        if_exists(self.remove_stale_pins()).map_err(self.failed())?;
        Ok(others.len() as u64)
    }

    /// Removes every file; running queries keep their files.
    pub fn clear(&self) -> Result<CacheExtent, CacheError> {
        let before = self.extent()?;
        self.keep_only(&BTreeSet::new())?;
        Ok(before)
    }
}

/// Whether the cache gives such names: to files, to ledger objects, and to unfinished ones.
fn is_own(name: &OsStr) -> bool {
    let (stem, kind) = name.to_str().and_then(|name| name.rsplit_once('.')).unwrap_or_default();
    matches!(kind, "parquet" | "object") && stem.parse::<Digest>().is_ok() || stem.is_empty() && kind.starts_with("tmp")
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Records that a file was used now.
fn touch(path: &Path) -> io::Result<()> {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
    Ok(rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?)
}

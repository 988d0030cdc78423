//! Files of an archive in a bucket, kept on this machine, where the engine reads them.
//!
//! A live file never changes. So a file is fetched once, checked against the ledger's hash on the way in, and shared by all
//! processes of the machine. The file that was used longest ago goes first. A question borrows its files as hard links of
//! its own: what another process removes from the cache meanwhile stays readable to it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::scope;

use tempfile::{NamedTempFile, TempDir};
use thiserror::Error;

use crate::model::Digest;

use super::checked::copy_checked;
use super::store::Store;
use super::{ArchiveError, FileEntry};

const FILES: &str = "files";
const LOANS: &str = "loans";
/// The process that removes files holds this lock.
const LOCK: &str = "lock";
/// Files that are fetched at once.
const FETCHES_AT_ONCE: usize = 8;

#[derive(Debug, Error)]
pub enum CacheError {
    #[error(
        "the question needs {needed} bytes of files, and the cache holds {limit}: ask about less, or set [cache] size"
    )]
    TooSmall { needed: u64, limit: u64 },
    #[error("cache {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// Gets the bytes of each file that was fetched, and the bytes of all files that the question needs.
pub type FetchProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A directory of this machine, shared by processes.
#[derive(Clone)]
pub struct Cache {
    directory: PathBuf,
    bytes_max: u64,
    progress: Option<FetchProgress>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({}, {} bytes)", self.directory.display(), self.bytes_max)
    }
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheExtent {
    pub files: u64,
    pub bytes: u64,
}

/// Files that a question reads, for as long as it lives.
#[derive(Debug)]
pub struct Loan {
    directory: TempDir,
    _lock: File,
}

impl Loan {
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What a lent file is called in the loan's directory.
    pub fn name_of(&self, file: &FileEntry) -> String {
        name_of(&file.sha256)
    }

    /// Where a lent file stands.
    pub fn path_of(&self, file: &FileEntry) -> PathBuf {
        self.directory.path().join(self.name_of(file))
    }
}

fn name_of(sha256: &Digest) -> String {
    format!("{sha256}.parquet")
}

impl Cache {
    /// The cache in `directory`, which need not be there yet.
    pub fn new(directory: impl Into<PathBuf>, bytes_max: u64) -> Self {
        Self { directory: directory.into(), bytes_max, progress: None }
    }

    /// Fetches are told to somebody.
    #[must_use]
    pub fn telling(self, progress: FetchProgress) -> Self {
        Self { progress: Some(progress), ..self }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    fn failed(&self) -> impl Fn(io::Error) -> CacheError + '_ {
        |source| CacheError::Io { path: self.directory.clone(), source }
    }

    /// Lends files, and fetches those that are not there.
    ///
    /// # Errors
    /// [`CacheError::TooSmall`] before anything is fetched; when the store fails, a file is not what the ledger says, or this
    /// machine's disk fails.
    pub fn lend(&self, store: &dyn Store, files: &[FileEntry]) -> Result<Loan, CacheError> {
        let wanted: BTreeMap<Digest, &FileEntry> = files.iter().map(|file| (file.sha256, file)).collect();
        let needed = wanted.values().map(|file| file.bytes).sum();
        if needed > self.bytes_max {
            return Err(CacheError::TooSmall { needed, limit: self.bytes_max });
        }
        let loan = self.begin_loan().map_err(self.failed())?;
        let waiting = Mutex::new(wanted.into_values().collect::<VecDeque<_>>());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let lend_some = || {
            while let Some(file) = next() {
                self.lend_one(store, file, &loan, needed).inspect_err(|_| while next().is_some() {})?;
            }
            Ok::<(), CacheError>(())
        };
        let all: Result<Vec<()>, CacheError> = scope(|scope| {
            let threads: Vec<_> = (0..FETCHES_AT_ONCE.min(files.len())).map(|_| scope.spawn(lend_some)).collect();
            threads.into_iter().map(|thread| thread.join().expect("BUG: lending does not panic")).collect()
        });
        all?;
        self.make_room(self.bytes_max).map_err(self.failed())?;
        Ok(loan)
    }

    fn begin_loan(&self) -> io::Result<Loan> {
        let loans = self.directory.join(LOANS);
        fs::create_dir_all(self.directory.join(FILES))?;
        fs::create_dir_all(&loans)?;
        self.end_abandoned_loans()?;
        let directory = tempfile::Builder::new().prefix("loan-").tempdir_in(&loans)?;
        // The lock gets its name when it is held: a lock that is free is a dead process's.
        let begun = directory.path().join("begun");
        let lock = File::create(&begun)?;
        lock.try_lock()?;
        fs::rename(begun, directory.path().join(LOCK))?;
        Ok(Loan { directory, _lock: lock })
    }

    /// A process that was killed leaves its links, and no lock on them.
    fn end_abandoned_loans(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.directory.join(LOANS))? {
            let path = entry?.path();
            let is_abandoned = File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
            if is_abandoned {
                let _ = fs::remove_dir_all(path);
            }
        }
        Ok(())
    }

    fn lend_one(&self, store: &dyn Store, file: &FileEntry, loan: &Loan, needed: u64) -> Result<(), CacheError> {
        let held = self.directory.join(FILES).join(name_of(&file.sha256));
        let lent = loan.path_of(file);
        match fs::hard_link(&held, &lent) {
            Ok(()) => return touch(&lent).map_err(self.failed()),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(self.failed()(e)),
        }
        self.fetch(store, file, loan, &held)?;
        if let Some(progress) = &self.progress {
            progress(file.bytes, needed);
        }
        Ok(())
    }

    /// Fetches a file into a loan, and lets it into the cache when it is what the ledger says. The loan keeps it, whatever
    /// another process removes from the cache.
    fn fetch(&self, store: &dyn Store, file: &FileEntry, loan: &Loan, place: &Path) -> Result<(), CacheError> {
        let mut kept = NamedTempFile::new_in(loan.directory()).map_err(self.failed())?;
        copy_checked(store, file, &mut kept, self.failed())?;
        fs::hard_link(kept.path(), loan.path_of(file)).map_err(self.failed())?;
        kept.persist(place).map_err(|e| self.failed()(e.error))?;
        Ok(())
    }

    /// Removes the files that were used longest ago, until no more than `bytes` are left. Where another process does so, it
    /// is left to that process.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let lock = File::create(self.directory.join(LOCK))?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        let mut held = self.held()?;
        held.sort_by_key(|(_, meta)| meta.modified().ok());
        let mut sum: u64 = held.iter().map(|(_, meta)| meta.len()).sum();
        for (path, meta) in held {
            if sum <= bytes {
                break;
            }
            remove_if_there(&path)?;
            sum -= meta.len();
        }
        Ok(())
    }

    fn held(&self) -> io::Result<Vec<(PathBuf, fs::Metadata)>> {
        let entries = match fs::read_dir(self.directory.join(FILES)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(meta) if meta.is_file() => found.push((entry.path(), meta)),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(found)
    }

    /// What it holds now.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn extent(&self) -> Result<CacheExtent, CacheError> {
        let held = self.held().map_err(self.failed())?;
        Ok(CacheExtent { files: held.len() as u64, bytes: held.iter().map(|(_, meta)| meta.len()).sum() })
    }

    /// Removes every file; questions under way keep theirs.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn clear(&self) -> Result<CacheExtent, CacheError> {
        let before = self.extent()?;
        let removed = self.held().and_then(|held| held.iter().try_for_each(|(path, _)| remove_if_there(path)));
        removed.map_err(self.failed())?;
        Ok(before)
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Notes that a file was used now.
fn touch(path: &Path) -> io::Result<()> {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
    Ok(rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?)
}

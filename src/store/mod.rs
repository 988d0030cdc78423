//! The edge to storage: its operations, and the durability that a commit needs.

mod blob;
mod directories;
mod local;
mod locks;
mod memory;
mod object;
mod split;
mod syncs;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use strum::Display;
use thiserror::Error;

use crate::model::path::TABLES;
use crate::model::{ArchivePlace, Instant, Location};

pub use blob::{Blob, BlobReader};
#[cfg(test)]
pub use directories::later_name;
pub use local::LocalStore;
pub use memory::MemoryStore;
pub use object::{BucketTest, ObjectStore, foreign_name, test_bucket};
#[cfg(test)]
pub(crate) use object::{ministack, s3};
pub use split::SplitStore;
#[cfg(test)]
pub use syncs::{Syncs, syncs_of};
#[cfg(test)]
pub(crate) use tests::pass_on;
#[cfg(test)]
pub use tests::{Fault, FaultyStore, ListHookStore};

/// The storage of an archive's files. Paths are relative, with `/`, as `model::path` spells them.
///
/// It has the eight operations that every store performs. Operations that only a bucket has are methods of [`ObjectStore`], which
/// [`Store::bucket_of`] gives.
///
/// Contract, which one conformance suite checks for every implementation:
/// - A change that an operation has acknowledged with `Ok` survives a loss of power.
/// - Every later operation of every process sees it at once, including `list`.
/// - Operations never follow symbolic links. Every error names the operation and the path; any operation can fail with
///   [`StoreError::Io`].
/// - Each operation is idempotent: repeating it succeeds, and makes the change durable again.
pub trait Store: Send + Sync {
    /// Starts a new file without a name. Nobody sees it before [`FileWriter::finish`].
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError>;

    /// Opens a file for random reads. Never blocks on a pipe or device.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Irregular`] if the path is no plain file, [`StoreError::Io`].
    fn read(&self, path: &str) -> Result<Blob, StoreError>;

    /// Every file under a directory (`""`: the whole archive), at any depth, sorted by path. A missing directory is
    /// empty. Locks are not listed. A list is never stale: a writer finds the end of its ledger by it, and a stale list would
    /// let the writer fork the ledger.
    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError>;

    /// Removes files. A missing file counts as removed. After an error, only some files may be removed.
    fn remove(&self, paths: &[&str]) -> Result<(), StoreError>;

    /// Writes `bytes` after the first `tail.keep` bytes of a file, and creates the file if `tail` is empty. The file must be
    /// exactly `tail.keep + tail.torn` bytes long, or already hold exactly these bytes after `tail.keep`.
    ///
    /// It must be the last file of its extension in its directory: this fences a writer that sleeps past midnight, after its
    /// successor began a new day. If [`StoreError::is_undone`] is true for an error, the file is unchanged. After any other
    /// error, the caller must read the file.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the file has another length, [`StoreError::Later`], [`StoreError::Io`].
    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError>;

    /// Creates a whole small file. Succeeds if the file already has these bytes, because an earlier answer can be lost. One of
    /// several concurrent writers wins. A reader sees the whole file or none.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when another file exists there, [`StoreError::Io`].
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Takes a lock until the guard is dropped or this process ends. The lock of a dead process is free. On a local disk, this
    /// waits for the lock of a new archive.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process holds it, [`StoreError::Io`].
    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError>;

    /// The store's own clock, which [`Listed::modified`] uses. It can differ from this machine's clock.
    fn now(&self) -> Result<Instant, StoreError>;

    /// Whether a lock excludes the writers of other processes: while a process holds it, no other process has a commit under way.
    fn has_process_locks(&self) -> bool {
        true
    }

    /// The bucket that holds the file or directory of a path. Only a bucket has uploads, older versions and a cache.
    fn bucket_of(&self, _path: &str) -> Option<&ObjectStore> {
        None
    }

    /// Both places, if the ledger lies in another place than all other files.
    fn as_split(&self) -> Option<&SplitStore> {
        None
    }
}

/// An upload without an end. No list shows its parts, and the owner of the bucket pays for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedUpload {
    /// The path that the file would have.
    pub path: String,
    pub id: String,
    /// The time of its start, by the store's clock.
    pub since: Instant,
}

/// A write-once file that was changed, and the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub path: String,
    pub what: String,
}

/// A file with a version that may remain, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unerased {
    pub path: String,
    pub why: String,
}

/// An unfinished file. If it is dropped without `finish`, nobody ever reads it.
pub trait FileWriter: Write + Send {
    /// Makes the content durable, places the file under its name, and makes the name durable. Replaces an existing file, so that
    /// its age is new. Never retries: after a failed sync the file is discarded.
    ///
    /// # Errors
    /// [`StoreError::Irregular`] for a path through a link, [`StoreError::Io`].
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError>;
}

/// Writes a whole small file under its name.
pub fn put(store: &dyn Store, path: &str, content: &[u8]) -> Result<(), StoreError> {
    let mut file = store.create()?;
    file.write_all(content).map_err(|e| StoreError::io(Verb::Write, path, e))?;
    file.finish(path)
}

/// The whole content of a small file.
pub fn get(store: &dyn Store, path: &str) -> Result<Bytes, StoreError> {
    store.read(path)?.to_bytes().map_err(|e| StoreError::io(Verb::Read, path, e))
}

/// Like [`Store::read`], for a file that a list has just shown: appends after the list may be missing. A bucket needs fewer requests
/// for it.
pub fn read_listed(store: &dyn Store, file: &Listed) -> Result<Blob, StoreError> {
    store.bucket_of(&file.path).map_or_else(|| store.read(&file.path), |bucket| bucket.read_listed(file))
}

/// Like [`read_listed`], for several files. A bucket answers several requests at once.
pub fn read_all_listed(store: &dyn Store, files: &[Listed]) -> Result<Vec<Blob>, StoreError> {
    match files.first().and_then(|file| store.bucket_of(&file.path)) {
        Some(bucket) => bucket.read_all_listed(files),
        None => files.iter().map(|file| store.read(&file.path)).collect(),
    }
}

/// Removes data files with all their older versions. Returns the files that may still have a version.
pub fn erase_all(store: &dyn Store, paths: &[&str]) -> Result<Vec<Unerased>, StoreError> {
    store.remove(paths)?;
    Ok(store.bucket_of(TABLES).map_or_else(Vec::new, |bucket| bucket.erase_versions(paths)))
}

/// The answer of a read; `None` if the file does not exist.
pub fn if_there<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(StoreError::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// The store of an archive. Sends no request yet.
///
/// # Errors
/// [`StoreError::Io`] when the environment's settings for a bucket are invalid.
pub fn open_store(place: &ArchivePlace) -> Result<Arc<dyn Store>, StoreError> {
    open_with(place, None)
}

/// Like [`open_store`], for questions: `kept` is a directory for ledger lines and snapshots of a bucket.
pub fn open_store_keeping(place: &ArchivePlace, kept: &Path) -> Result<Arc<dyn Store>, StoreError> {
    // Only files of an archive in a bucket are evicted from the cache.
    open_with(place, matches!(place.data, Location::Bucket(_)).then_some(kept))
}

fn open_with(place: &ArchivePlace, kept: Option<&Path>) -> Result<Arc<dyn Store>, StoreError> {
    let open = |location: &Location, is_ledger: bool| {
        let bucket = match location {
            Location::Local(path) => return Ok(Arc::new(LocalStore::new(path)) as Arc<dyn Store>),
            Location::Bucket(bucket) => ObjectStore::open(bucket, is_ledger)?,
        };
        Ok(Arc::new(kept.map_or(bucket.clone(), |directory| bucket.with_object_cache(directory))))
    };
    let data = open(&place.data, false)?;
    let Some(ledger) = &place.ledger else { return Ok(data) };
    Ok(Arc::new(SplitStore::new(data, open(ledger, true)?)))
}

/// A held lock, which its drop releases.
pub trait Guard: Send + Sync {}

impl<T: Send + Sync> Guard for T {}

/// The known end of a file before an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tail {
    /// Number of bytes to keep.
    pub keep: u64,
    /// Number of torn bytes after them, which the append removes.
    pub torn: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub path: String,
    pub bytes: u64,
    /// The time of the last write, by the store's clock.
    pub modified: Instant,
    /// The store's own mark of the content: other content has another tag.
    pub tag: Option<String>,
    /// Why this entry is not a plain file: a link, a pipe, a name that is not UTF-8.
    pub irregular: Option<String>,
}

impl Listed {
    /// A plain file without a tag.
    pub fn new(path: String, bytes: u64, modified: Instant) -> Self {
        Self { path, bytes, modified, tag: None, irregular: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
#[strum(serialize_all = "lowercase")]
pub enum Verb {
    Open,
    Create,
    Write,
    Sync,
    Read,
    List,
    Remove,
    #[strum(to_string = "append to")]
    Append,
    Lock,
    #[strum(to_string = "read the clock of")]
    Clock,
}

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("cannot {verb} {path}: {source}")]
    Io {
        verb: Verb,
        path: String,
        source: io::Error,
        /// The operation is known to have changed nothing.
        undone: bool,
    },
    #[error("{path}: not found")]
    NotFound { path: String },
    #[error("{path}: {what}")]
    Irregular { path: String, what: String },
    #[error(
        "cannot append to {path}: its length is {found} bytes, expected {expected}: another writer has appended to it"
    )]
    Conflict { path: String, expected: u64, found: u64 },
    #[error("cannot append to {path}: the later file {later} exists already: another writer has begun it")]
    Later { path: String, later: String },
    #[error("{location} is unfit for an archive: {what}")]
    Unfit { location: String, what: String },
    #[error("lock {name}: another process holds it")]
    Locked { name: String },
}

impl StoreError {
    pub(crate) fn io(verb: Verb, path: &str, source: io::Error) -> Self {
        StoreError::Io { verb, path: path.to_owned(), source, undone: false }
    }

    fn irregular(path: &str, what: impl Into<String>) -> Self {
        StoreError::Irregular { path: path.to_owned(), what: what.into() }
    }

    fn conflict(path: &str, tail: Tail, found: u64) -> Self {
        StoreError::Conflict { path: path.to_owned(), expected: tail.keep + tail.torn, found }
    }

    fn not_found(path: &str) -> Self {
        StoreError::NotFound { path: path.to_owned() }
    }

    /// Whether the failed operation is known to have changed nothing.
    pub fn is_undone(&self) -> bool {
        match self {
            StoreError::Io { undone, .. } => *undone,
            _ => true,
        }
    }

    /// Whether another writer appended first.
    pub fn is_fenced(&self) -> bool {
        matches!(self, StoreError::Conflict { .. } | StoreError::Later { .. })
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, StoreError::NotFound { .. })
    }
}

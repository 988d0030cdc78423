//! The edge to storage: eight verbs, and the promise of durability that a commit rests on.

mod blob;
#[cfg(test)]
mod conformance;
mod directories;
mod faulty;
mod local;
mod memory;
mod object;

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use thiserror::Error;

use crate::model::{Instant, Location};

pub use blob::Blob;
#[cfg(test)]
pub use directories::later_name;
pub use faulty::{Fault, FaultyStore};
pub use local::LocalStore;
pub use memory::MemoryStore;
#[cfg(test)]
pub(crate) use object::s3;
pub use object::{ObjectStore, Proof, prove_store};

/// Where files are kept. Paths are relative, with `/`, as `super::path` spells them.
///
/// Contract, checked for every implementation by one conformance suite:
/// - What a verb has answered `Ok` for survives a loss of power.
/// - What a verb has answered `Ok` for is seen at once by every later verb of every process; `list` is no exception.
/// - Verbs never follow symbolic links, and name the verb and the path in every error.
/// - Each verb may be repeated. Doing again what is done already is success, and makes it durable again.
pub trait Store: Send + Sync {
    /// Starts a new file that has no name yet. Nobody sees it before [`FileWriter::finish`].
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError>;

    /// Opens a file for reading at any place. Never waits for what is not a file.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Irregular`] for what is not a plain file, [`StoreError::Io`].
    fn read(&self, path: &str) -> Result<Blob, StoreError>;

    /// Every file under a directory (`""`: the whole archive), at any depth, in the order of paths. A directory that is
    /// not there is empty. Locks are not listed. A list is never behind: a writer finds the end of its ledger by it, and
    /// one that was shown an earlier end would fork the ledger.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError>;

    /// Removes files. A file that is not there is removed already. After an error some may be removed and others not.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn remove_all(&self, paths: &[&str]) -> Result<(), StoreError>;

    /// As [`Store::remove_all`], of one file.
    ///
    /// # Errors
    /// As [`Store::remove_all`].
    fn remove(&self, path: &str) -> Result<(), StoreError> {
        self.remove_all(&[path])
    }

    /// Writes `bytes` behind the first `tail.keep` bytes of a file, which is made when `tail` is empty. The file must be
    /// exactly `tail.keep + tail.torn` bytes long, or hold exactly these bytes behind `tail.keep` already. It must be the
    /// last file of its extension in its directory: a writer that sleeps through midnight is fenced by the day file of its
    /// successor. An error whose [`StoreError::is_undone`] is true left the file as it was; after any other error the file
    /// must be read to find out.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the file has another length, [`StoreError::Later`], [`StoreError::Io`].
    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError>;

    /// Takes a lock for as long as the guard lives or this process does. A lock that a dead process left is no lock.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when someone else holds it, [`StoreError::Io`].
    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError>;

    /// The store's own clock, by which [`Listed::modified`] is told. It may differ from the clock of this machine.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn now(&self) -> Result<Instant, StoreError>;

    /// Files that are written once, as ledger lines in a bucket, and that somebody wrote again or deleted: a store that keeps
    /// older versions tells. Others know nothing.
    ///
    /// # Errors
    /// [`StoreError::Io`] where the store does not show its versions.
    fn rewritten(&self) -> Result<Vec<Rewritten>, StoreError> {
        Ok(Vec::new())
    }
}

/// A file that is written once, and what was done to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub path: String,
    pub what: String,
}

/// A file in the making. Dropped without `finish`, it leaves nothing that anybody reads.
pub trait FileWriter: Write + Send {
    /// Makes the content durable, then places the file under a name, and makes the name durable. A file that stands there
    /// already is replaced, so that its age is new. Never tried twice: after a failed sync the file is thrown away.
    ///
    /// # Errors
    /// [`StoreError::Irregular`] for a path behind a link, [`StoreError::Io`].
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError>;
}

/// Writes a whole small file under its name.
///
/// # Errors
/// As [`Store::create`] and [`FileWriter::finish`].
pub fn put(store: &dyn Store, path: &str, content: &[u8]) -> Result<(), StoreError> {
    let mut file = store.create()?;
    file.write_all(content).map_err(|e| StoreError::io(Verb::Write, path, e))?;
    file.finish(path)
}

/// The store at a place. Nothing is asked of it yet.
///
/// # Errors
/// [`StoreError::Io`] when what the environment says of a bucket cannot be used.
pub fn open_store(location: &Location) -> Result<Arc<dyn Store>, StoreError> {
    Ok(match location {
        Location::Local(path) => Arc::new(LocalStore::new(path)),
        Location::Bucket(bucket) => Arc::new(ObjectStore::open(bucket)?),
    })
}

/// A held lock.
pub trait Guard: Send + Sync {}

/// What is known of the end of a file that is appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tail {
    /// Bytes that stay.
    pub keep: u64,
    /// Bytes behind them that an interrupted append left, and that go.
    pub torn: u64,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub path: String,
    pub bytes: u64,
    /// When the file was written last, by the store's clock.
    pub modified: Instant,
    /// Why this is not a file that can be trusted to be read: a link, a pipe, a name that is not UTF-8.
    pub irregular: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Open,
    Create,
    Write,
    Sync,
    Read,
    List,
    Remove,
    Append,
    Lock,
    Clock,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Open => "open",
            Verb::Create => "create",
            Verb::Write => "write",
            Verb::Sync => "sync",
            Verb::Read => "read",
            Verb::List => "list",
            Verb::Remove => "remove",
            Verb::Append => "append to",
            Verb::Lock => "lock",
            Verb::Clock => "read the clock of",
        })
    }
}

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("cannot {verb} {path}: {source}")]
    Io {
        verb: Verb,
        path: String,
        source: io::Error,
        /// The verb failed and is known to have changed nothing.
        undone: bool,
    },
    #[error("{path}: not found")]
    NotFound { path: String },
    #[error("{path}: {what}")]
    Irregular { path: String, what: String },
    #[error("cannot append to {path}: {found} bytes long, expected {expected}: another writer was here")]
    Conflict { path: String, expected: u64, found: u64 },
    #[error("cannot append to {path}: {later} is there already: another writer was here")]
    Later { path: String, later: String },
    #[error("{location} cannot be trusted with an archive: {what}")]
    Unfit { location: String, what: String },
    #[error("lock {name}: held by another process")]
    Locked { name: String },
}

impl StoreError {
    pub(crate) fn io(verb: Verb, path: &str, source: io::Error) -> Self {
        StoreError::Io { verb, path: path.to_owned(), source, undone: false }
    }

    /// Whether the failed verb is known to have changed nothing.
    pub fn is_undone(&self) -> bool {
        match self {
            StoreError::Io { undone, .. } => *undone,
            _ => true,
        }
    }

    /// Whether another writer went on where this one meant to.
    pub fn is_fenced(&self) -> bool {
        matches!(self, StoreError::Conflict { .. } | StoreError::Later { .. })
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, StoreError::NotFound { .. })
    }
}

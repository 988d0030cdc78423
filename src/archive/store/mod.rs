//! The edge to storage: seven verbs, and the sync discipline that makes a commit durable.

mod blob;
#[cfg(test)]
mod conformance;
mod directories;
mod faulty;
mod local;
mod memory;

use std::fmt;
use std::io::{self, Write};

use thiserror::Error;

pub use blob::Blob;
pub use faulty::{Fault, FaultyStore};
pub use local::LocalStore;
pub use memory::MemoryStore;

/// Where files are kept. Paths are relative, with `/`, as `super::path` spells them.
///
/// Contract, checked for every implementation by one conformance suite:
/// - What a verb has answered `Ok` for survives a loss of power.
/// - What a verb has answered `Ok` for is seen at once by every later verb of every process; `list` is no exception.
/// - Verbs never follow symbolic links, and name the verb and the path in every error.
/// - `publish`, `remove` and `append` may be repeated: doing again what is done already is success, and makes it durable
///   again. So recovery is the code of success, run again.
pub trait Store: Send + Sync {
    /// Starts a new file, making directories as needed. Refuses a path that is taken. Nothing is promised about the
    /// file until [`FileWriter::finish`] answered `Ok`.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Io`].
    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, StoreError>;

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

    /// Moves a finished file in place, whatever stood there. When `from` is gone and `to` is there, it is done already.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when neither is there, [`StoreError::Io`].
    fn publish(&self, from: &str, to: &str) -> Result<(), StoreError>;

    /// Takes a file away. A file that is not there is gone already.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn remove(&self, path: &str) -> Result<(), StoreError>;

    /// As [`Store::publish`] for each of `(from, to)`. What they need in common a store may do once; after an error some may be
    /// done and others not.
    ///
    /// # Errors
    /// As [`Store::publish`].
    fn publish_all(&self, moves: &[(&str, &str)]) -> Result<(), StoreError> {
        moves.iter().try_for_each(|(from, to)| self.publish(from, to))
    }

    /// As [`Store::remove`] for each, in the same way.
    ///
    /// # Errors
    /// As [`Store::remove`].
    fn remove_all(&self, paths: &[&str]) -> Result<(), StoreError> {
        paths.iter().try_for_each(|path| self.remove(path))
    }

    /// Writes `bytes` behind the first `tail.keep` bytes of a file, which is made when `tail` is empty. The file must be
    /// exactly `tail.keep + tail.torn` bytes long, or hold exactly these bytes behind `tail.keep` already. An error whose
    /// [`StoreError::is_undone`] is true left the file as it was; after any other the file must be read to find out.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the file has another length, [`StoreError::Io`].
    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError>;

    /// Takes a lock for as long as the guard lives or this process does. A lock that a dead process left is no lock.
    ///
    /// # Errors
    /// [`StoreError::Locked`] when someone else holds it, [`StoreError::Io`].
    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError>;
}

/// A file in the making. Dropped without `finish`, it is worth nothing and may be left behind.
pub trait FileWriter: Write + Send {
    /// Makes content and name durable. Never tried twice on one file: after a failed sync the file is thrown away.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn finish(self: Box<Self>) -> Result<(), StoreError>;
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
    /// Why this is not a file that can be trusted to be read: a link, a pipe, a name that is not UTF-8.
    pub irregular: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Create,
    Write,
    Sync,
    Read,
    List,
    Publish,
    Remove,
    Append,
    Lock,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verb::Create => "create",
            Verb::Write => "write",
            Verb::Sync => "sync",
            Verb::Read => "read",
            Verb::List => "list",
            Verb::Publish => "publish",
            Verb::Remove => "remove",
            Verb::Append => "append to",
            Verb::Lock => "lock",
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
    #[error("{path}: there already")]
    Exists { path: String },
    #[error("{path}: {what}")]
    Irregular { path: String, what: String },
    #[error("cannot append to {path}: {found} bytes long, expected {expected}: another writer was here")]
    Conflict { path: String, expected: u64, found: u64 },
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

    pub fn is_not_found(&self) -> bool {
        matches!(self, StoreError::NotFound { .. })
    }
}

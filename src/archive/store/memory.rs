//! The store in memory, for tests and simulations: what was answered `Ok` is what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use super::{Blob, FileWriter, Guard, Listed, Store, StoreError, Tail};

/// Clones share one content, as processes share a disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<String, Bytes>,
    locks: BTreeSet<String>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// A store of its own with the same files and no locks: the disk as a crash at this moment leaves it.
    pub fn snapshot(&self) -> Self {
        let inner = Inner { files: self.inner().files.clone(), locks: BTreeSet::new() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Puts a file there behind the archive's back, or takes it away: for tests of damage.
    pub fn tamper(&self, path: &str, content: Option<Bytes>) {
        let mut inner = self.inner();
        match content {
            Some(content) => inner.files.insert(path.to_owned(), content),
            None => inner.files.remove(path),
        };
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("BUG: no verb of the memory store panics")
    }
}

impl Store for MemoryStore {
    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, StoreError> {
        let mut inner = self.inner();
        if inner.files.contains_key(path) {
            return Err(StoreError::Exists { path: path.to_owned() });
        }
        inner.files.insert(path.to_owned(), Bytes::new());
        Ok(Box::new(MemoryWriter { store: self.clone(), path: path.to_owned(), content: Vec::new() }))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        let found = self.inner().files.get(path).cloned();
        found.map(Blob::Bytes).ok_or_else(|| StoreError::NotFound { path: path.to_owned() })
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let inner = self.inner();
        let under = inner.files.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        Ok(under.map(|(path, b)| Listed { path: path.clone(), bytes: b.len() as u64, irregular: None }).collect())
    }

    fn publish(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let mut inner = self.inner();
        match inner.files.remove(from) {
            Some(content) => {
                inner.files.insert(to.to_owned(), content);
                Ok(())
            }
            None if inner.files.contains_key(to) => Ok(()),
            None => Err(StoreError::NotFound { path: to.to_owned() }),
        }
    }

    fn remove(&self, path: &str) -> Result<(), StoreError> {
        self.inner().files.remove(path);
        Ok(())
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let content = inner.files.get(path).cloned();
        let found = content.as_ref().map_or(0, |c| c.len() as u64);
        let conflict = StoreError::Conflict { path: path.to_owned(), expected: tail.keep + tail.torn, found };
        let keep = usize::try_from(tail.keep).expect("BUG: a file in memory");
        let content = content.unwrap_or_default();
        let Some(kept) = content.get(..keep) else { return Err(conflict) };
        let is_done = &content[keep..] == bytes;
        if found != tail.keep + tail.torn && !is_done {
            return Err(conflict);
        }
        inner.files.insert(path.to_owned(), [kept, bytes].concat().into());
        Ok(())
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        if !self.inner().locks.insert(name.to_owned()) {
            return Err(StoreError::Locked { name: name.to_owned() });
        }
        Ok(Box::new(MemoryGuard { store: self.clone(), name: name.to_owned() }))
    }
}

struct MemoryGuard {
    store: MemoryStore,
    name: String,
}

impl Guard for MemoryGuard {}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        self.store.inner().locks.remove(&self.name);
    }
}

struct MemoryWriter {
    store: MemoryStore,
    path: String,
    content: Vec<u8>,
}

impl Write for MemoryWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.content.extend_from_slice(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWriter for MemoryWriter {
    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let Self { store, path, content } = *self;
        store.inner().files.insert(path, content.into());
        Ok(())
    }
}

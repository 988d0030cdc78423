//! The store in memory, for tests and simulations. Every acknowledged operation is durable.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::model::Instant;

use super::directories::later_name;
use super::locks::Locks;
use super::{Blob, FileWriter, Guard, Listed, Store, StoreError, Tail};

/// Clones share one content, as processes share a disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
    locks: Locks,
}

#[derive(Debug, Clone, Default)]
struct Inner {
    files: BTreeMap<String, MemoryFile>,
    now: Instant,
}

#[derive(Debug, Clone)]
struct MemoryFile {
    content: Bytes,
    modified: Instant,
}

impl Inner {
    fn put(&mut self, path: &str, content: Bytes) {
        let file = MemoryFile { content, modified: self.now };
        self.files.insert(path.to_owned(), file);
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// A separate store with the same files and no locks: the disk after a crash at this moment.
    pub fn snapshot(&self) -> Self {
        Self { inner: Arc::new(Mutex::new(self.inner.lock().clone())), locks: Locks::default() }
    }

    /// Sets the store's clock, which stands still between two calls.
    pub fn set_now(&self, now: Instant) {
        self.inner.lock().now = now;
    }

    /// For tests of damage: replaces or removes a file without the archive's knowledge.
    pub fn tamper(&self, path: &str, content: Option<Bytes>) {
        let mut inner = self.inner.lock();
        match content {
            Some(content) => inner.put(path, content),
            None => drop(inner.files.remove(path)),
        }
    }
}

impl Store for MemoryStore {
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        Ok(Box::new(MemoryWriter { store: self.clone(), content: Vec::new() }))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        let found = self.inner.lock().files.get(path).map(|file| file.content.clone());
        found.map(Blob::Bytes).ok_or_else(|| StoreError::not_found(path))
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let inner = self.inner.lock();
        let under = inner.files.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        let entry =
            |(path, file): (&String, &MemoryFile)| Listed::new(path.clone(), file.content.len() as u64, file.modified);
        Ok(under.map(entry).collect())
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        let mut inner = self.inner.lock();
        paths.iter().for_each(|path| drop(inner.files.remove(*path)));
        Ok(())
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let mut inner = self.inner.lock();
        if let Some(later) = later_name(path, inner.files.keys().map(String::as_str)) {
            return Err(StoreError::Later { path: path.to_owned(), later: later.to_owned() });
        }
        let content = inner.files.get(path).map(|file| file.content.clone()).unwrap_or_default();
        let found = content.len() as u64;
        let conflict = StoreError::conflict(path, tail, found);
        let keep = usize::try_from(tail.keep).expect("BUG: a file in memory");
        let Some((kept, behind)) = content.split_at_checked(keep) else { return Err(conflict) };
        if behind == bytes && inner.files.contains_key(path) {
            return Ok(());
        }
        if found != tail.keep + tail.torn {
            return Err(conflict);
        }
        inner.put(path, [kept, bytes].concat().into());
        Ok(())
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let mut inner = self.inner.lock();
        match inner.files.get(path) {
            None => inner.put(path, Bytes::copy_from_slice(bytes)),
            Some(file) if file.content == bytes => {}
            Some(file) => return Err(StoreError::conflict(path, Tail::default(), file.content.len() as u64)),
        }
        Ok(())
    }

    fn now(&self) -> Result<Instant, StoreError> {
        Ok(self.inner.lock().now)
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        self.locks.take(name)
    }
}

struct MemoryWriter {
    store: MemoryStore,
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
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError> {
        let Self { store, content } = *self;
        store.inner.lock().put(path, content.into());
        Ok(())
    }
}

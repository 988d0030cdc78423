//! A store that fails on request, for tests: verb number N fails before it is done, or after.

use std::io;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Blob, FileWriter, Guard, Listed, Store, StoreError, Tail, Verb};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The verb fails and changes nothing; whether it did is not known.
    Failed,
    /// The verb fails and changes nothing, and says so.
    FailedUndone,
    /// The verb is done, and answers that it failed.
    FailedButDone,
}

/// Counts the verbs (a file's sync counts as one of its own) and fails from a chosen one on, as a dying disk does.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    counter: Arc<AtomicU64>,
    fail_at: u64,
    /// False: only the chosen verb fails.
    forever: bool,
    fault: Fault,
}

impl FaultyStore {
    /// `fail_at` counts from 0; `u64::MAX` never fails, which counts the verbs of a run. `forever`: so do all after it.
    pub fn new(inner: Arc<dyn Store>, fail_at: u64, forever: bool, fault: Fault) -> Self {
        Self { inner, counter: Arc::new(AtomicU64::new(0)), fail_at, forever, fault }
    }

    /// Verbs so far.
    pub fn verbs(&self) -> u64 {
        self.counter.load(Ordering::SeqCst)
    }

    fn run<T>(&self, verb: Verb, path: &str, act: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let number = self.counter.fetch_add(1, Ordering::SeqCst);
        let is_chosen = number == self.fail_at;
        let is_after = self.forever && number > self.fail_at;
        if !is_chosen && !is_after {
            return act();
        }
        if is_chosen && self.fault == Fault::FailedButDone {
            act()?;
        }
        let source = io::Error::other(format!("injected fault at verb {number}"));
        Err(StoreError::Io { verb, path: path.to_owned(), source, undone: self.fault == Fault::FailedUndone })
    }
}

impl Store for FaultyStore {
    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, StoreError> {
        let inner = self.run(Verb::Create, path, || self.inner.create(path))?;
        Ok(Box::new(FaultyWriter { store: self.clone(), inner, path: path.to_owned() }))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        self.run(Verb::Read, path, || self.inner.read(path))
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        self.run(Verb::List, directory, || self.inner.list(directory))
    }

    fn publish(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.run(Verb::Publish, to, || self.inner.publish(from, to))
    }

    fn remove(&self, path: &str) -> Result<(), StoreError> {
        self.run(Verb::Remove, path, || self.inner.remove(path))
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        self.run(Verb::Append, path, || self.inner.append(path, tail, bytes))
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        self.run(Verb::Lock, name, || self.inner.lock(name))
    }
}

struct FaultyWriter {
    store: FaultyStore,
    inner: Box<dyn FileWriter>,
    path: String,
}

impl Write for FaultyWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let Self { store, inner, path } = self;
        let mut written = Ok(0);
        let outcome = store.run(Verb::Write, path, || {
            written = inner.write(buffer);
            Ok(())
        });
        match outcome {
            Ok(()) => written,
            Err(_) => Err(io::Error::other("injected fault in a write")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl FileWriter for FaultyWriter {
    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let Self { store, inner, path } = *self;
        store.run(Verb::Sync, &path, || inner.finish())
    }
}

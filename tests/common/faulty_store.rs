//! A store for tests that fails on request: operation number N fails before or after its effect.

use std::io;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use annals::model::Instant;
use annals::store::{Blob, FileWriter, Guard, Listed, SplitStore, Store, StoreError, Tail, Verb};

/// The name of a file without a final name in error messages.
const NAMELESS: &str = "a new file";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails without an effect, but the error does not say so.
    Failed,
    /// The operation fails without an effect, and the error says so.
    FailedUndone,
    /// The operation takes effect, but returns an error.
    FailedButDone,
}

/// Counts the operations (a file's sync counts as one) and fails at a chosen one, and optionally at all later ones, like a failing disk.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    counter: Arc<AtomicU64>,
    fail_at: u64,
    /// False: only the chosen operation fails.
    forever: bool,
    fault: Fault,
}

impl FaultyStore {
    /// `fail_at` counts from 0; `u64::MAX` never fails, which counts the operations of a run. `forever`: all later operations fail, too.
    pub fn new(inner: Arc<dyn Store>, fail_at: u64, forever: bool, fault: Fault) -> Self {
        Self { inner, counter: Arc::new(AtomicU64::new(0)), fail_at, forever, fault }
    }

    /// Number of operations so far.
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
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        let inner = self.run(Verb::Create, NAMELESS, || self.inner.create())?;
        Ok(Box::new(FaultyWriter { store: self.clone(), inner }))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        self.run(Verb::Read, path, || self.inner.read(path))
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        self.run(Verb::List, directory, || self.inner.list(directory))
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        let path = paths.first().copied().unwrap_or_default();
        self.run(Verb::Remove, path, || self.inner.remove(paths))
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        self.run(Verb::Append, path, || self.inner.append(path, tail, bytes))
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.run(Verb::Create, path, || self.inner.create_new(path, bytes))
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        self.run(Verb::Lock, name, || self.inner.lock(name))
    }

    fn now(&self) -> Result<Instant, StoreError> {
        self.run(Verb::Clock, "the store", || self.inner.now())
    }

    fn has_process_locks(&self) -> bool {
        self.inner.has_process_locks()
    }

    fn as_split(&self) -> Option<&SplitStore> {
        self.inner.as_split()
    }
}

struct FaultyWriter {
    store: FaultyStore,
    inner: Box<dyn FileWriter>,
}

impl Write for FaultyWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let Self { store, inner } = self;
        let mut written = Ok(0);
        let outcome = store.run(Verb::Write, NAMELESS, || {
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
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError> {
        let Self { store, inner } = *self;
        store.run(Verb::Sync, path, || inner.finish(path))
    }
}

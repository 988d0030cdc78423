//! A store for tests that runs a hook after each list.

use std::sync::Arc;

use crate::model::Instant;

use super::super::{Blob, FileWriter, Guard, Listed, Store, StoreError, Tail};

pub struct ListHookStore {
    pub inner: Arc<dyn Store>,
    /// Gets the listed directory.
    pub hook: Box<dyn Fn(&str) + Send + Sync>,
}

impl Store for ListHookStore {
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        self.inner.create()
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        self.inner.read(path)
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let listed = self.inner.list(directory)?;
        (self.hook)(directory);
        Ok(listed)
    }

    fn remove_all(&self, paths: &[&str]) -> Result<(), StoreError> {
        self.inner.remove_all(paths)
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        self.inner.append(path, tail, bytes)
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.inner.create_new(path, bytes)
    }

    /// Like an object store: only the append fences, so the hook can write.
    fn lock(&self, _: &str) -> Result<Box<dyn Guard>, StoreError> {
        Ok(Box::new(()))
    }

    fn now(&self) -> Result<Instant, StoreError> {
        self.inner.now()
    }
}

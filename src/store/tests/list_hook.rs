//! A store for tests that runs a hook after each list.

use std::sync::Arc;

use super::super::{Guard, Listed, Store, StoreError, pass_on};

pub struct ListHookStore {
    pub inner: Arc<dyn Store>,
    /// Gets the listed directory.
    pub hook: Box<dyn Fn(&str) + Send + Sync>,
}

impl Store for ListHookStore {
    pass_on! { create read remove append create_new now }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let listed = self.inner.list(directory)?;
        (self.hook)(directory);
        Ok(listed)
    }

    /// Like an object store: only the append fences, so the hook can write.
    fn lock(&self, _: &str) -> Result<Box<dyn Guard>, StoreError> {
        Ok(Box::new(()))
    }
}

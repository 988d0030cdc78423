//! The locks of a store that only one process uses, or that has no locks of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Guard, StoreError};

/// Names of held locks. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Locks(Arc<Mutex<BTreeSet<String>>>);

impl Locks {
    pub(super) fn take(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        match self.0.lock().insert(name.to_owned()) {
            true => Ok(Box::new(HeldLock { locks: self.clone(), name: name.to_owned() })),
            false => Err(StoreError::Locked { name: name.to_owned() }),
        }
    }
}

struct HeldLock {
    locks: Locks,
    name: String,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.locks.0.lock().remove(&self.name);
    }
}

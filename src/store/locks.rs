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
        match self.change(|held| held.insert(name.to_owned())) {
            true => Ok(Box::new(HeldLock { locks: self.clone(), name: name.to_owned() })),
            false => Err(StoreError::Locked { name: name.to_owned() }),
        }
    }

    fn change(&self, act: impl FnOnce(&mut BTreeSet<String>) -> bool) -> bool {
        act(&mut self.0.lock())
    }
}

struct HeldLock {
    locks: Locks,
    name: String,
}

impl Guard for HeldLock {}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.locks.change(|held| held.remove(&self.name));
    }
}

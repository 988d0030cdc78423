//! For how long the files stay that no ledger line names any more.

use std::time::Duration;

use crate::model::Instant;

/// Which removals are so recent that readers may still need the removed files.
#[derive(Debug, Clone, Copy)]
pub struct Grace {
    /// What was written or removed after this is kept.
    edge: Instant,
}

impl Grace {
    /// The grace as it ends now.
    pub fn ending(now: Instant, grace: Duration) -> Self {
        Self { edge: now.minus(grace) }
    }

    pub fn covers(self, at: Instant) -> bool {
        at >= self.edge
    }
}

//! How long files remain after no ledger line names them.

use std::time::Duration;

use crate::model::Instant;

/// Decides whether a removal is so recent that readers can still need the file.
#[derive(Debug, Clone, Copy)]
pub struct Grace {
    /// `vacuum` keeps files that were written or removed after this time.
    edge: Instant,
}

impl Grace {
    /// The grace period that ends at `now`.
    pub fn ending(now: Instant, grace: Duration) -> Self {
        Self { edge: now.minus(grace) }
    }

    pub fn covers(self, at: Instant) -> bool {
        at >= self.edge
    }
}

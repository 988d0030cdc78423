//! What one round may spend on a list that does not hold still.

use std::sync::atomic::{AtomicU64, Ordering};

/// Ranges of a round that may fail to hold still, beside one for each page of events that the round confirms. One second
/// that moves makes a day fail seventeen times, once at each halving.
pub const FAILED_RANGES_MAX: u64 = 32;

/// Shared by all readers of one round. A range that fails to hold still is read as two halves, and each of them may fail
/// again. When the budget is spent, ranges that fail are no longer split: they stay open until another round.
#[derive(Debug, Default)]
pub struct SplitBudget {
    failed: AtomicU64,
    confirmed_pages: AtomicU64,
}

impl SplitBudget {
    /// A range did not hold still.
    pub fn note_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// A range was confirmed, and holds so many pages of events.
    pub fn note_confirmed(&self, pages: u64) {
        self.confirmed_pages.fetch_add(pages, Ordering::Relaxed);
    }

    pub fn is_spent(&self) -> bool {
        let confirmed = self.confirmed_pages.load(Ordering::Relaxed);
        self.failed.load(Ordering::Relaxed) >= FAILED_RANGES_MAX + confirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_round_confirms_lets_it_fail_more_often() {
        let budget = SplitBudget::default();
        (0..FAILED_RANGES_MAX).for_each(|_| budget.note_failed());
        assert!(budget.is_spent());
        budget.note_confirmed(0);
        assert!(budget.is_spent(), "empty ranges are no progress");
        budget.note_confirmed(2);
        assert!(!budget.is_spent());
        budget.note_failed();
        budget.note_failed();
        assert!(budget.is_spent());
    }
}

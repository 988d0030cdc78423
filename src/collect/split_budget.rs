//! One round's budget for unstable ranges.

use std::sync::atomic::{AtomicU64, Ordering};

/// This number of ranges may be unstable in a round, plus one for each page of events that the round confirms. One
/// unstable second makes a day fail seventeen times, once at each halving.
pub const FAILED_RANGES_MAX: u64 = 32;

/// Shared by all readers of one round. An unstable range is read as two halves, and each half may be unstable again. When the budget
/// is spent, unstable ranges are no longer split: they stay open until another round.
#[derive(Debug, Default)]
pub struct SplitBudget {
    failed: AtomicU64,
    confirmed_pages: AtomicU64,
}

impl SplitBudget {
    /// A range was unstable.
    pub fn note_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// A range with this number of pages of events was confirmed.
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
    fn each_confirmed_page_adds_one_allowed_failure() {
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

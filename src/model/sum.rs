//! Sums of counts from a ledger or table: the counts can be wrong, and too large for a sum.

/// The sum of `counts`, or the largest number if the sum is larger.
pub fn saturating_sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

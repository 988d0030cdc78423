//! The number of some rows, and the sum of their digests. The rules of a commit compare these sums.

use serde::{Deserialize, Serialize};

use crate::model::Digest;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsSum {
    pub rows: u64,
    /// The sum of the digests of the rows, modulo 2^256: equal for the same rows in any order and encoding.
    #[serde(rename = "rows_digest")]
    pub digest: Digest,
}

impl RowsSum {
    pub fn new(rows: u64, digest: Digest) -> Self {
        Self { rows, digest }
    }

    /// The rows of both. A hostile ledger can contain any number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { rows: self.rows.saturating_add(other.rows), digest: sum(self.digest, other.digest) }
    }

    /// These rows without the rows of `other`.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        let digest = complement(sum(complement(self.digest), other.digest));
        Self { rows: self.rows.saturating_sub(other.rows), digest }
    }
}

/// The sum of two digests as big-endian numbers of 256 bits.
fn sum(one: Digest, other: Digest) -> Digest {
    let ([high, low], [other_high, other_low]) = (halves(one), halves(other));
    let (low, carry) = low.overflowing_add(other_low);
    let high = high.wrapping_add(other_high).wrapping_add(u128::from(carry));
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&high.to_be_bytes());
    bytes[16..].copy_from_slice(&low.to_be_bytes());
    Digest(bytes)
}

fn halves(digest: Digest) -> [u128; 2] {
    let (high, low) = digest.0.split_at(16);
    [high, low].map(|half| u128::from_be_bytes(half.try_into().expect("BUG: half of 32 bytes")))
}

/// The largest number minus this one.
fn complement(digest: Digest) -> Digest {
    Digest(digest.0.map(|byte| !byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(low: u128, high: u128) -> RowsSum {
        let bytes = [high.to_be_bytes(), low.to_be_bytes()].concat();
        RowsSum::new(0, Digest(bytes.try_into().unwrap()))
    }

    #[test]
    fn sums_carry_and_wrap() {
        let all = rows(u128::MAX, u128::MAX);
        for (a, b, sum) in [
            (rows(1, 0), rows(2, 0), rows(3, 0)),
            (rows(u128::from(u64::MAX), 0), rows(1, 0), rows(1 << 64, 0)),
            (rows(u128::MAX, 0), rows(1, 0), rows(0, 1)),
            (all, rows(1, 0), rows(0, 0)),
            (all, all, rows(u128::MAX - 1, u128::MAX)),
        ] {
            assert_eq!(a.plus(b), sum);
            assert_eq!(b.plus(a), sum);
            assert_eq!((sum.less(a), sum.less(b)), (b, a));
        }
    }
}

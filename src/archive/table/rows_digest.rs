//! The sum of the digests of rows.

use crate::model::Digest;

/// A number of 256 bits, in two halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowsDigest {
    high: u128,
    low: u128,
}

impl RowsDigest {
    /// The digest of the rows of both, modulo 2^256.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (low, carry) = self.low.overflowing_add(other.low);
        Self { high: self.high.wrapping_add(other.high).wrapping_add(u128::from(carry)), low }
    }

    /// The digest of these rows without the rows of `other`, modulo 2^256.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        Self { high: self.high.wrapping_sub(other.high).wrapping_sub(u128::from(borrow)), low }
    }
}

impl From<Digest> for RowsDigest {
    fn from(digest: Digest) -> Self {
        let half = |bytes: &[u8]| u128::from_be_bytes(bytes.try_into().expect("BUG: half of 32 bytes"));
        let (high, low) = digest.0.split_at(16);
        Self { high: half(high), low: half(low) }
    }
}

impl From<RowsDigest> for Digest {
    fn from(sum: RowsDigest) -> Self {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&sum.high.to_be_bytes());
        bytes[16..].copy_from_slice(&sum.low.to_be_bytes());
        Digest(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(low: u128, high: u128) -> RowsDigest {
        RowsDigest { high, low }
    }

    #[test]
    fn sums_carry_and_wrap() {
        let all = digest(u128::MAX, u128::MAX);
        for (a, b, sum) in [
            (digest(1, 0), digest(2, 0), digest(3, 0)),
            (digest(u128::from(u64::MAX), 0), digest(1, 0), digest(1 << 64, 0)),
            (digest(u128::MAX, 0), digest(1, 0), digest(0, 1)),
            (all, digest(1, 0), digest(0, 0)),
            (all, all, digest(u128::MAX - 1, u128::MAX)),
        ] {
            assert_eq!(a.plus(b), sum);
            assert_eq!(b.plus(a), sum);
            assert_eq!((sum.less(a), sum.less(b)), (b, a));
            assert_eq!(RowsDigest::from(Digest::from(sum)), sum);
        }
    }
}

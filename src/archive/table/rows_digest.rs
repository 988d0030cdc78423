//! The sum of the digests of rows.

use crate::model::Digest;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowsDigest([u64; 4]);

impl RowsDigest {
    /// The digest of the rows of both, modulo 2^256.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let mut sum = [0; 4];
        let mut carry = false;
        for place in (0..4).rev() {
            let (part, over) = self.0[place].overflowing_add(other.0[place]);
            let (part, over_again) = part.overflowing_add(u64::from(carry));
            sum[place] = part;
            carry = over || over_again;
        }
        Self(sum)
    }

    /// The digest of these rows without the rows of `other`, modulo 2^256.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        // Two's complement: subtract by adding the inverted bits and one.
        let turned = Self(other.0.map(|word| !word));
        self.plus(turned).plus(Self([0, 0, 0, 1]))
    }
}

impl From<Digest> for RowsDigest {
    fn from(digest: Digest) -> Self {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(digest.0.chunks_exact(8)) {
            *word = u64::from_be_bytes(bytes.try_into().expect("BUG: chunks of eight"));
        }
        Self(words)
    }
}

impl From<RowsDigest> for Digest {
    fn from(sum: RowsDigest) -> Self {
        let mut bytes = [0; 32];
        for (place, word) in bytes.chunks_exact_mut(8).zip(sum.0) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        Digest(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(low: u64, high: u64) -> RowsDigest {
        RowsDigest([high, 0, 0, low])
    }

    #[test]
    fn sums_carry_and_wrap() {
        let all = RowsDigest([u64::MAX; 4]);
        for (a, b, sum) in [
            (digest(1, 0), digest(2, 0), digest(3, 0)),
            (digest(u64::MAX, 0), digest(1, 0), RowsDigest([0, 0, 1, 0])),
            (all, digest(1, 0), digest(0, 0)),
            (all, all, RowsDigest([u64::MAX, u64::MAX, u64::MAX, u64::MAX - 1])),
        ] {
            assert_eq!(a.plus(b), sum);
            assert_eq!(b.plus(a), sum);
            assert_eq!((sum.less(a), sum.less(b)), (b, a));
            assert_eq!(RowsDigest::from(Digest::from(sum)), sum);
        }
    }
}

//! Random numbers that are equal on every machine: all synthetic data is a function of the seed.

/// Every secret of the sandbox begins with this text. No file, log or page of a reader may contain it.
pub const SECRET_PREFIX: &str = "planted-secret-";

/// Mixes the bits of `x`: equal inputs give equal outputs, and similar inputs give different ones.
pub(super) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Mixes two numbers into one; their order matters.
pub(super) const fn mix2(a: u64, b: u64) -> u64 {
    mix(mix(a) ^ b)
}

/// A stream of random numbers from one seed.
#[derive(Debug, Clone)]
pub(super) struct SeededRandom(u64);

impl SeededRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next_u64(&mut self) -> u64 {
        let rolled = mix(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        rolled
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        scale(self.next_u64(), bound)
    }

    /// A number in `low..high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low))
    }

    /// A span of time in `low..high`, in the unit of the arguments.
    pub(super) fn span(&mut self, low: u32, high: i64) -> i64 {
        let high = u64::try_from(high).unwrap_or(0);
        i64::try_from(self.between(u64::from(low), high)).expect("BUG: a number below a positive i64 fits one")
    }

    /// A position in a list of `len` items.
    pub(super) fn place(&mut self, len: usize) -> usize {
        index(self.next_u64(), len)
    }

    /// True in `share` of 1000 calls.
    pub(super) fn per_mille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.place(from.len())]
    }
}

/// A position as the records store it. The start checks that no list has more than 2^32 entries.
pub(super) fn short(place: usize) -> u32 {
    u32::try_from(place).expect("BUG: a list of the sandbox has fewer than 2^32 entries")
}

/// Maps a random number to `0..bound`.
pub(super) fn scale(roll: u64, bound: u64) -> u64 {
    let wide = (u128::from(roll) * u128::from(bound)) >> 64;
    u64::try_from(wide).expect("BUG: the upper half of a product fits 64 bits")
}

/// Maps a random number to a position in a list of `len` items.
pub(super) fn index(roll: u64, len: usize) -> usize {
    usize::try_from(scale(roll, len as u64)).expect("BUG: a number below a length is a place")
}

/// Twenty-four hexadecimal digits: the form of the sandbox's opaque ids.
pub(super) fn opaque_id(seed: u64, what: u64) -> String {
    let high = mix2(seed, what);
    format!("{high:016x}{:08x}", mix2(high, seed) & 0xffff_ffff)
}

pub(super) fn secret(seed: u64, what: u64) -> String {
    format!("{SECRET_PREFIX}{:016x}", mix2(mix2(seed, what), 0x5ec3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_never_change() {
        // The first outputs of SplitMix64 for this seed, from its authors' publication.
        let mut random = SeededRandom::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(random.next_u64(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn a_bounded_random_number_stays_in_its_bounds_and_reaches_them() {
        let mut random = SeededRandom::new(7);
        let rolled: Vec<u64> = (0..1000).map(|_| random.between(3, 8)).collect();
        assert_eq!((rolled.iter().min(), rolled.iter().max()), (Some(&3), Some(&7)));
        assert_eq!(SeededRandom::new(7).below(0), 0);
    }
}

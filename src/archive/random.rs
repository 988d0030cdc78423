//! Random numbers. They make equal lines and files of two writers differ, and make salts that nobody can guess.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::system_random;

/// An archive's source of random numbers. Clones share one source.
#[derive(Clone)]
pub struct Random(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Random {
    pub fn new(source: Arc<dyn Fn() -> u64 + Send + Sync>) -> Self {
        Self(source)
    }

    /// 32 random bytes for salts.
    pub fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&(self.0)().to_le_bytes()));
        seed
    }

    /// The random number of one line or file.
    pub fn nonce(&self) -> Nonce {
        Nonce((self.0)())
    }
}

impl Default for Random {
    fn default() -> Self {
        Self(Arc::new(system_random))
    }
}

/// The random number of one line or file, as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce(pub u64);

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Nonce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nonce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let nonce = u64::from_str_radix(&text, 16).ok().map(Nonce).filter(|nonce| nonce.to_string() == text);
        nonce.ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not 16 hexadecimal digits")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_sixteen_digits() {
        let nonce = Nonce(0x00ab_cdef_0123_4567);
        assert_eq!(serde_json::to_string(&nonce).unwrap(), "\"00abcdef01234567\"");
        assert_eq!(serde_json::from_str::<Nonce>("\"00abcdef01234567\"").unwrap(), nonce);
        for odd in ["00abcdef0123456", "00abcdef012345678", "00ABCDEF01234567", "+0abcdef01234567", ""] {
            assert!(serde_json::from_str::<Nonce>(&format!("{odd:?}")).is_err(), "{odd}");
        }
    }

    #[test]
    fn the_system_gives_different_numbers() {
        let random = Random::default();
        assert_ne!(random.nonce(), random.nonce());
    }
}

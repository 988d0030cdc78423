//! SHA-256 digests: of events, files and ledger lines.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of all that `content` still has.
    ///
    /// # Errors
    /// The errors of the reader.
    pub fn of_reader(content: &mut dyn Read) -> io::Result<Self> {
        let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 17]);
        loop {
            match content.read(&mut buffer)? {
                0 => return Ok(Self(hasher.finalize().into())),
                taken => hasher.update(&buffer[..taken]),
            }
        }
    }

    /// The digest of the concatenated `parts`, with a prefix that separates hashes of different uses.
    pub fn with_domain(domain: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(domain.as_bytes());
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The first 16 hexadecimal digits: enough for a name, not for a proof.
    pub fn short(&self) -> String {
        hex::encode(&self.0[..8])
    }

    /// The first 32 hexadecimal digits: an event without an id of its own is named by its content.
    pub fn content_id(&self) -> String {
        hex::encode(&self.0[..16])
    }

    /// Passes the digits to `take` without allocating: a ledger contains many digests.
    fn with_digits<T>(&self, take: impl FnOnce(&str) -> T) -> T {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).expect("BUG: two digits a byte");
        take(std::str::from_utf8(&digits).expect("BUG: digits are ASCII"))
    }
}

/// A hash map with digests as keys, which need no further hashing.
pub type DigestMap<V> = HashMap<Digest, V, BuildHasherDefault<DigestHasher>>;

/// Uses the one number that a [`Digest`] passes as the hash.
#[derive(Debug, Clone, Copy, Default)]
pub struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = self.0.rotate_left(5) ^ word;
    }
}

impl std::hash::Hash for Digest {
    /// A digest is uniform already: eight of its bytes make a good hash.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from_le_bytes(self.0[..8].try_into().expect("BUG: a digest has 32 bytes")));
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_digits(|digits| f.write_str(digits))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|e| format!("{text:?} is not a SHA-256 digest: {e}"))?;
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_digits(|digits| serializer.serialize_str(digits))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits;
        impl serde::de::Visitor<'_> for Digits {
            type Value = Digest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a SHA-256 digest")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Digest, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Digits)
    }
}

//! Multisets, in which the reads of a window are joined.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};

use super::DigestHasher;

/// A multiset of digests, or of keys that contain one; the hash is assumed to be uniform. Equality compares multiplicities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multiset<K: Eq + Hash> {
    counts: HashMap<K, u32, BuildHasherDefault<DigestHasher>>,
}

impl<K: Eq + Hash> Default for Multiset<K> {
    fn default() -> Self {
        Self { counts: HashMap::default() }
    }
}

impl<K: Eq + Hash> Multiset<K> {
    /// An empty multiset with room for this many keys.
    pub fn with_room_for(keys: usize) -> Self {
        Self { counts: HashMap::with_capacity_and_hasher(keys, BuildHasherDefault::default()) }
    }

    /// Adds one occurrence and returns the new multiplicity.
    pub fn add(&mut self, key: K) -> u32 {
        let count = self.counts.entry(key).or_insert(0);
        *count += 1;
        *count
    }

    /// Raises the multiplicity of `key` to at least `count`.
    pub fn raise(&mut self, key: K, count: u32) {
        let held = self.counts.entry(key).or_insert(0);
        *held = (*held).max(count);
    }

    pub fn count(&self, key: &K) -> u32 {
        self.counts.get(key).copied().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, u32)> {
        self.counts.iter().map(|(k, &n)| (k, n))
    }
}

impl<K: Eq + Hash> FromIterator<K> for Multiset<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = Self::default();
        for key in keys {
            set.add(key);
        }
        set
    }
}

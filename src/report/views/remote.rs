//! The ledger entries of the live files of an archive in a bucket, and the cache that fetches them.

use std::collections::BTreeMap;

use crate::archive::{Cache, FileEntry, TeamState};

/// The live files of a snapshot of an archive in a bucket.
#[derive(Debug, Clone)]
pub struct Remote {
    pub(in crate::report) cache: Cache,
    /// By their addresses in the snapshot.
    pub(in crate::report) entries: BTreeMap<String, FileEntry>,
}

impl Remote {
    pub fn new(cache: Cache) -> Self {
        Self { cache, entries: BTreeMap::new() }
    }

    pub(in crate::report) fn add(&mut self, root: &str, state: &TeamState) {
        let entries = state.files.values().map(|entry| (format!("{root}/{}", entry.path), entry.clone()));
        self.entries.extend(entries);
    }
}

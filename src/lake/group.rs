//! Spreads the files of a snapshot over manifests: few manifests, and a small change rewrites little.

use std::collections::BTreeSet;

use super::manifest::{DataFile, Entry, ManifestFile, Status};
use super::table::Manifest;

/// A change is joined with each manifest that holds at most this many times its files. So each manifest is this many times as
/// large as the next one, and a table of a million files has about ten manifests.
const GROWTH: u64 = 4;

/// The manifests of the next snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouped {
    /// The unchanged manifests.
    pub kept: Vec<ManifestFile>,
    /// The entries of the one new manifest.
    pub entries: Vec<Entry>,
}

/// Adds files to a table and takes the files `gone` from it, in a snapshot of this id and sequence number.
pub fn group(
    manifests: Vec<Manifest>,
    gone: &BTreeSet<&str>,
    added: Vec<DataFile>,
    snapshot_id: i64,
    sequence: i64,
) -> Grouped {
    let mut entries: Vec<Entry> =
        added.into_iter().map(|file| Entry { status: Status::Added, snapshot_id, sequence, file }).collect();
    let is_gone = |entry: &Entry| entry.is_live() && gone.contains(entry.file.path.as_str());
    let (touched, mut others): (Vec<Manifest>, Vec<Manifest>) =
        manifests.into_iter().partition(|manifest| manifest.entries.iter().any(is_gone));
    for entry in touched.into_iter().flat_map(live) {
        entries.push(match gone.contains(entry.file.path.as_str()) {
            true => Entry { status: Status::Deleted, snapshot_id, ..entry },
            false => Entry { status: Status::Existing, ..entry },
        });
    }
    others.sort_by_key(|manifest| manifest.file.live());
    let mut size = entries.iter().filter(|entry| entry.is_live()).count() as u64;
    let mut kept = Vec::new();
    for manifest in others {
        match manifest.file.live() {
            0 => {}
            files if files <= size.saturating_mul(GROWTH) => {
                size += files;
                entries.extend(live(manifest).map(|entry| Entry { status: Status::Existing, ..entry }));
            }
            _ => kept.push(manifest.file),
        }
    }
    Grouped { kept, entries }
}

fn live(manifest: Manifest) -> impl Iterator<Item = Entry> {
    manifest.entries.into_iter().filter(Entry::is_live)
}

//! Everything that is there and should not be.

use std::collections::{BTreeMap, BTreeSet};

use super::super::FileEntry;
use super::super::path::{ArchivePath, MANIFEST, STAGING};
use super::super::publish::staged_path;
use super::super::store::{Listed, Store};
use super::ledgers::Walk;
use super::{FaultCode, VerifyReport, by_content};
use crate::model::Digest;

/// Names every listed file that no ledger names, and says what it is where that can be told.
pub fn check(store: &dyn Store, walks: &[Walk], listed: &[Listed], report: &mut VerifyReport) {
    let live: BTreeSet<&str> = walks
        .iter()
        .filter_map(|walk| walk.state.as_ref())
        .flat_map(|state| state.files.keys().map(String::as_str))
        .collect();
    let leaving: BTreeSet<&str> = walks.iter().flat_map(leaving).collect();
    let staged: BTreeSet<String> = walks.iter().flat_map(staged).collect();
    let contents = by_content(walks);
    for entry in listed {
        let path = entry.path.as_str();
        if live.contains(path) {
            if let Some(what) = &entry.irregular {
                report.fault(FaultCode::Unreadable, path, what);
            }
            continue;
        }
        let is_gone = matches!(store.read(path), Err(e) if e.is_not_found());
        if is_gone || staged.contains(path) {
            continue;
        }
        match ArchivePath::parse(path) {
            Some(ArchivePath::Manifest | ArchivePath::Ledger { .. } | ArchivePath::Heads { .. }) => {}
            // Never truth: what a reader makes of a wrong one is a whole replay.
            Some(ArchivePath::Snapshot { .. }) => {}
            Some(ArchivePath::Staging { .. }) => report.pending += 1,
            Some(ArchivePath::Data(_)) if leaving.contains(path) => report.pending += 1,
            None if path == format!("{STAGING}/{MANIFEST}") => report.pending += 1,
            _ => name_stray(store, entry, &contents, report),
        }
    }
}

/// What the last line removes may still be there for a moment.
fn leaving(walk: &Walk) -> impl Iterator<Item = &str> {
    walk.last.iter().flat_map(|line| line.body.removes.iter().map(String::as_str))
}

/// Where the files of the last line may still be waiting; they were counted where they are looked for.
fn staged(walk: &Walk) -> impl Iterator<Item = String> {
    let count = |line: &super::super::ledger::Line| line.body.adds.len();
    walk.last.iter().flat_map(move |line| (0..count(line)).map(|index| staged_path(&walk.key, line, index)))
}

fn name_stray(
    store: &dyn Store,
    entry: &Listed,
    contents: &BTreeMap<Digest, Vec<&FileEntry>>,
    report: &mut VerifyReport,
) {
    let path = entry.path.as_str();
    report.fault(FaultCode::OrphanFile, path, format!("{} bytes that no ledger names", entry.bytes));
    if let Some(what) = &entry.irregular {
        return report.fault(FaultCode::Unreadable, path, what);
    }
    let is_candidate = contents.values().flatten().any(|file| file.bytes == entry.bytes);
    let digest = is_candidate.then(|| store.read(path).ok().and_then(|blob| blob.digest().ok())).flatten();
    let Some(originals) = digest.and_then(|digest| contents.get(&digest)) else { return };
    for original in originals {
        let is_missing = matches!(store.read(&original.path), Err(e) if e.is_not_found());
        if is_missing {
            report.fault(FaultCode::PathMismatch, path, format!("holds what belongs at {}", original.path));
        } else {
            report.fault(FaultCode::DupFile, path, format!("a copy of {}", original.path));
        }
    }
}

//! Everything that is there and that no ledger names: files within the grace are counted, the others are faults.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::grace::Grace;
use super::super::path::{ArchivePath, DataPath, SCRATCH};
use super::super::state::TeamState;
use super::super::store::{Listed, Store};
use super::super::{ArchiveError, FileEntry};
use super::asking::Asking;
use super::ledgers::Walk;
use super::{FaultCode, VerifyReport, by_content};
use crate::model::{Digest, Instant};

/// Live files by the digest of their bytes.
type Contents<'a> = BTreeMap<Digest, Vec<&'a FileEntry>>;

/// A schedule of `vacuum` that runs once a day removes a file at most so long after its grace.
const VACUUM_TURN: Duration = Duration::from_secs(24 * 3_600);

/// Counts every listed file that no ledger names and that is within the grace. Names every other one, and says what it is
/// where that can be told.
///
/// # Errors
/// When the store does not tell the time.
pub fn check(
    store: &dyn Store,
    asking: &Asking,
    walks: &[Walk],
    listed: &[Listed],
    report: &mut VerifyReport,
) -> Result<(), ArchiveError> {
    let live: BTreeSet<&str> = walks
        .iter()
        .filter_map(|walk| walk.state.as_ref())
        .flat_map(|state| state.files.keys().map(String::as_str))
        .collect();
    let salts: BTreeSet<String> =
        walks.iter().filter_map(|walk| walk.state.as_ref()).flat_map(TeamState::salt_paths).collect();
    let removed: BTreeMap<&str, Instant> =
        walks.iter().flat_map(|walk| &walk.removed).map(|(path, at)| (path.as_str(), *at)).collect();
    let grace = Grace::ending(store.now()?, asking.grace.saturating_add(VACUUM_TURN));
    let contents = by_content(walks);
    for entry in listed {
        let path = entry.path.as_str();
        if live.contains(path) || salts.contains(path) {
            if let Some(what) = &entry.irregular {
                report.fault(FaultCode::Unreadable, path, what);
            }
            continue;
        }
        let is_scratch = path.strip_prefix(SCRATCH).is_some_and(|rest| rest.starts_with('/'));
        let removed_at = removed.get(path);
        let is_kept = grace.covers(entry.modified) || removed_at.is_some_and(|at| grace.covers(*at));
        match ArchivePath::parse(path) {
            Some(ArchivePath::Manifest | ArchivePath::Ledger { .. } | ArchivePath::Heads { .. }) => {}
            // Never truth: what a reader makes of a wrong one is a whole replay.
            Some(ArchivePath::Snapshot { .. }) => {}
            Some(ArchivePath::Data(_)) if is_kept && removed_at.is_some() => report.retired += 1,
            Some(ArchivePath::Data(place)) if is_kept && !is_copy(store, entry, &place, &contents) => {
                report.unnamed += 1;
            }
            Some(ArchivePath::Salt { .. }) if is_kept => report.unnamed += 1,
            None if is_scratch && is_kept => report.unnamed += 1,
            // A vacuum may have removed it since it was listed.
            _ if matches!(store.read(path), Err(e) if e.is_not_found()) => {}
            _ => name_leftover(store, entry, &contents, report),
        }
    }
    Ok(())
}

fn name_leftover(store: &dyn Store, entry: &Listed, contents: &Contents<'_>, report: &mut VerifyReport) {
    let path = entry.path.as_str();
    report.fault(FaultCode::OrphanFile, path, format!("{} bytes that no ledger names", entry.bytes));
    if let Some(what) = &entry.irregular {
        return report.fault(FaultCode::Unreadable, path, what);
    }
    for original in originals(store, entry, contents) {
        let is_missing = matches!(store.read(&original.path), Err(e) if e.is_not_found());
        if is_missing {
            report.fault(FaultCode::PathMismatch, path, format!("holds what belongs at {}", original.path));
        } else {
            report.fault(FaultCode::DupFile, path, format!("a copy of {}", original.path));
        }
    }
}

/// Whether it was copied or moved: a commit that failed leaves no file of the same bytes and role in two places.
fn is_copy(store: &dyn Store, entry: &Listed, place: &DataPath, contents: &Contents<'_>) -> bool {
    originals(store, entry, contents).iter().any(|original| original.role == place.role)
}

/// The live files that hold the same bytes.
fn originals<'a>(store: &dyn Store, entry: &Listed, contents: &'a Contents<'a>) -> &'a [&'a FileEntry] {
    let is_candidate = contents.values().flatten().any(|file| file.bytes == entry.bytes);
    let digest = is_candidate.then(|| store.read(&entry.path).ok().and_then(|blob| blob.digest().ok())).flatten();
    digest.and_then(|digest| contents.get(&digest)).map_or(&[], Vec::as_slice)
}

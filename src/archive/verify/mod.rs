//! The whole archive against its ledger: read-only, offline, and every fault, not the first.

mod files;
mod ledgers;
mod report;
mod strays;

use std::collections::BTreeMap;

use crate::model::Digest;

use super::path::{ArchivePath, LEDGER, TeamKey};
use super::root::read_manifest;
use super::store::{Listed, Store};
use super::{ArchiveError, FileEntry};

use ledgers::Walk;
pub use report::{Counts, FaultCode, TeamReport, Verdict, VerifyFault, VerifyReport};

/// A writer may commit while we look; after that many looks, what we saw is what there is.
const LOOKS_MAX: usize = 3;

/// What to verify beyond the archive itself.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Heads remembered elsewhere, each the hash of a ledger line: the archive must still hold every one of them.
    pub heads: Vec<Digest>,
}

/// Verifies an archive. What is damaged stands in the report; nothing is changed.
///
/// # Errors
/// When the archive cannot be listed at all.
pub fn verify(store: &dyn Store, options: &VerifyOptions) -> Result<VerifyReport, ArchiveError> {
    for _ in 1..LOOKS_MAX {
        let before = store.list(LEDGER)?;
        let report = look(store, options)?;
        if report.faults.is_empty() || store.list(LEDGER)? == before {
            return Ok(report);
        }
    }
    look(store, options)
}

fn look(store: &dyn Store, options: &VerifyOptions) -> Result<VerifyReport, ArchiveError> {
    let mut report = VerifyReport::default();
    let id = match read_manifest(store) {
        Ok(Some(manifest)) => Some(manifest.id),
        Ok(None) => {
            report.fault(FaultCode::Manifest, "archive.json", "not there");
            None
        }
        Err(e) => {
            let code = if matches!(e, ArchiveError::Version { .. }) { FaultCode::Version } else { FaultCode::Manifest };
            report.fault(code, "archive.json", e);
            None
        }
    };
    // Files first, ledgers second: what a commit adds meanwhile is then live, or was not listed.
    let listed = store.list("")?;
    let walks = walk_ledgers(store, id.as_deref(), &listed, &mut report);
    for walk in &walks {
        files::check(store, walk, &mut report);
    }
    strays::check(store, &walks, &listed, &mut report);
    for head in &options.heads {
        if !walks.iter().any(|walk| walk.hashes.contains(head)) {
            report.fault(FaultCode::HeadRollback, head, "no ledger line has this hash: what followed it is gone too");
        }
    }
    report.archive_id = id;
    report.heads_asked = options.heads.len();
    report.conclude();
    Ok(report)
}

fn walk_ledgers(store: &dyn Store, id: Option<&str>, listed: &[Listed], report: &mut VerifyReport) -> Vec<Walk> {
    let mut ledgers: BTreeMap<TeamKey, Vec<&Listed>> = BTreeMap::new();
    for entry in listed {
        if let Some(ArchivePath::Ledger { team, .. }) = ArchivePath::parse(&entry.path) {
            ledgers.entry(team).or_default().push(entry);
        }
    }
    ledgers.into_iter().map(|(key, files)| Walk::over(store, id, key, &files, report)).collect()
}

/// Live files of all teams by content, to tell copies and moved files from strangers.
fn by_content(walks: &[Walk]) -> BTreeMap<Digest, Vec<&FileEntry>> {
    let mut found: BTreeMap<Digest, Vec<&FileEntry>> = BTreeMap::new();
    for file in walks.iter().filter_map(|walk| walk.state.as_ref()).flat_map(|state| state.files.values()) {
        found.entry(file.sha256).or_default().push(file);
    }
    found
}

//! Verifies the whole archive against its ledger: read-only, offline, and with every fault, not only the first.

mod files;
mod known_heads;
mod ledgers;
mod options;
mod policy;
mod report;
mod signatures;
mod unnamed_files;

use crate::model::path::{ArchivePath, LEDGER, LEDGER_MANIFEST, TABLES, ledger_of};
use crate::model::{LedgerSeq, TeamKey};
use crate::store::{Listed, ObjectStore, Rewritten, SplitStore, Store};
use std::collections::BTreeMap;

use super::ArchiveError;
use super::ledger::note::Head;
use super::manifest::read_manifest;

use ledgers::Walk;
pub use options::{KnownHead, VerifyOptions};
pub use report::{Anchored, Counts, Damage, FaultCode, Signed, TeamReport, Verdict, VerifyFault, VerifyReport};
use signatures::Days;

/// A writer can append while verify reads a ledger and its signatures: then both are read again, up to this many times.
const ATTEMPTS_MAX: usize = 3;

/// Verifies an archive. The report lists all damage; nothing is changed.
pub fn verify(store: &dyn Store, options: &VerifyOptions) -> Result<VerifyReport, ArchiveError> {
    [TABLES, LEDGER].into_iter().filter_map(|place| store.bucket_of(place)).for_each(ObjectStore::forget);
    for _ in 1..ATTEMPTS_MAX {
        // A list that fails is no reason to stop: the report names why.
        let before = store.list(LEDGER).ok();
        let report = attempt(store, options)?;
        if report.faults.is_empty() || store.list(LEDGER).ok() == before {
            return Ok(report);
        }
    }
    attempt(store, options)
}

fn attempt(store: &dyn Store, options: &VerifyOptions) -> Result<VerifyReport, ArchiveError> {
    let mut report = VerifyReport { asked: "whole_archive", ..VerifyReport::default() };
    match read_manifest(store).and_then(|found| found.ok_or(ArchiveError::NotAnArchive)) {
        Ok(manifest) => {
            if let Err(error) = manifest.check_ledger(store) {
                report.fault(FaultCode::Manifest, LEDGER_MANIFEST, error);
            }
            report.archive_id = Some(manifest.id);
        }
        Err(e) => {
            let code = if matches!(e, ArchiveError::Version { .. }) { FaultCode::Version } else { FaultCode::Manifest };
            report.fault(code, "archive.json", e);
        }
    }
    // List the files before the ledgers are read: then every listed file of a new commit is live.
    let listed = store.list("")?;
    let walks = walk_ledgers(store, options, &listed, &mut report);
    check_manifest(&walks, &mut report);
    policy::check(&walks, &mut report);
    policy::notice_changes(&walks, &options.retention, &mut report);
    files::check(store, &walks, &mut report);
    unnamed_files::check(store, options, &walks, &listed, &mut report)?;
    check_objects(store, &mut report);
    options.check_heads(&walks, &mut report);
    options.notice_stale_heads(&mut report);
    report.heads_asked = options.heads.len();
    report.conclude();
    Ok(report)
}

/// The heads that the ledgers no longer hold. Reads no other file.
///
/// # Errors
/// When the ledgers cannot be listed, or there is no archive.
pub fn lost_heads(store: &dyn Store, heads: Vec<Head>) -> Result<Vec<VerifyFault>, ArchiveError> {
    let heads = heads.into_iter().map(KnownHead::Note).collect();
    let options = VerifyOptions { heads, ..VerifyOptions::default() };
    let manifest = read_manifest(store)?.ok_or(ArchiveError::NotAnArchive)?;
    let mut report = VerifyReport { archive_id: Some(manifest.id), ..VerifyReport::default() };
    let walks = walk_ledgers(store, &options, &store.list(LEDGER)?, &mut report);
    // Other faults of the ledgers say nothing about these heads.
    report.faults.clear();
    options.check_heads(&walks, &mut report);
    Ok(report.faults)
}

fn walk_ledgers(store: &dyn Store, options: &VerifyOptions, listed: &[Listed], report: &mut VerifyReport) -> Vec<Walk> {
    let mut ledgers: BTreeMap<TeamKey, Days<'_>> = BTreeMap::new();
    let mut snapshots: BTreeMap<TeamKey, LedgerSeq> = BTreeMap::new();
    for entry in listed {
        match ArchivePath::parse(&entry.path) {
            Some(ArchivePath::Ledger { team, day }) => {
                ledgers.entry(team).or_default().entry(day).or_default().0 = Some(entry);
            }
            Some(ArchivePath::Heads { team, day }) => {
                ledgers.entry(team).or_default().entry(day).or_default().1 = Some(entry);
            }
            Some(ArchivePath::Snapshot { team, seq }) => {
                let newest = snapshots.entry(team).or_default();
                *newest = seq.max(*newest);
            }
            _ => {}
        }
    }
    for (key, snapshot) in &snapshots {
        // A first line can be newer than the listing.
        if store.list(&ledger_of(key)).is_ok_and(|files| files.iter().all(|file| file.bytes == 0)) {
            let detail = format!(
                "no line is there, but a snapshot of line {snapshot} exists: if a copy began here, run annals copy again, else restore \
                 the ledger"
            );
            report.fault(FaultCode::SeqGap, ledger_of(key), detail);
        }
    }
    let walk = |(key, files): (TeamKey, Days<'_>)| {
        let snapshot = snapshots.get(&key).copied();
        Walk::over(store, options, key, &files, snapshot, report)
    };
    ledgers.into_iter().map(walk).collect()
}

/// Reports ledger objects of a bucket that somebody overwrote or deleted, and ledger files that no reader reads.
fn check_objects(store: &dyn Store, report: &mut VerifyReport) {
    let bucket = store.bucket_of(LEDGER);
    let altered = [bucket.map(ObjectStore::altered_parts), store.as_split().map(SplitStore::strays)];
    let mut found = Vec::new();
    for altered in altered.into_iter().flatten() {
        match altered {
            Ok(altered) => found.extend(altered),
            Err(error) => report.fault(FaultCode::Unreadable, LEDGER, error),
        }
    }
    match bucket.map_or_else(|| Ok(Vec::new()), ObjectStore::rewritten) {
        Ok(rewritten) => found.extend(rewritten),
        Err(error) => {
            report.notice(FaultCode::Rewritten, LEDGER, format!("older versions were not checked: {error}"));
        }
    }
    for Rewritten { path, what } in found {
        report.fault(FaultCode::Rewritten, path, what);
    }
}

/// If every line of every ledger names the same other archive, the manifest is the changed one.
fn check_manifest(walks: &[Walk], report: &mut VerifyReport) {
    let Some(id) = &report.archive_id else { return };
    let mut named = walks.iter().map(|walk| walk.named_archive.as_ref());
    if let Some(Some(first)) = named.next()
        && first != id
        && named.all(|other| other == Some(first))
    {
        let detail = format!("names archive {id}, but every ledger line names {first}");
        report.fault(FaultCode::Manifest, "archive.json", detail);
    }
}

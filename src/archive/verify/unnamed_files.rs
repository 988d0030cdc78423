//! Checks the files that no ledger names. Files within the grace, and intact files that a line removed, are counted. All others
//! are faults, and so are the files that an order of erasure covers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::{ArchiveError, FileEntry};
use super::ledgers::{Removal, Walk};
use super::options::VerifyOptions;
use super::{FaultCode, VerifyReport};
use crate::archive::deletion::erase::{is_order, order_path};
use crate::archive::ledger::state::TeamState;
use crate::model::path::{ArchivePath, DataPath, SCRATCH, ledger_of};
use crate::model::{Digest, LedgerSeq, TeamKey};
use crate::store::{Listed, Store};

/// Live files by the digest of their bytes.
type Contents<'a> = BTreeMap<Digest, Vec<&'a FileEntry>>;

/// A daily `vacuum` removes a file at most this long after its grace.
const VACUUM_TURN: Duration = Duration::from_secs(24 * 3_600);

/// Counts the listed files that no ledger names and that may exist. Reports every other one, and describes it if possible.
pub fn check(
    store: &dyn Store,
    options: &VerifyOptions,
    walks: &[Walk],
    listed: &[Listed],
    report: &mut VerifyReport,
) -> Result<(), ArchiveError> {
    let states = || walks.iter().filter_map(|walk| walk.state.as_ref());
    let live: BTreeSet<&str> = states().flat_map(|state| state.files.keys().map(String::as_str)).collect();
    let salts: BTreeSet<String> = states().flat_map(TeamState::salt_paths).collect();
    let removed: BTreeMap<&str, &Removal> =
        walks.iter().flat_map(|walk| &walk.removed).map(|(path, removal)| (path.as_str(), removal)).collect();
    let is_unfinished = |order: &str| listed.iter().any(|entry| entry.path == order_path(order));
    let since = store.now()?.minus(options.grace.saturating_add(VACUUM_TURN));
    let last_order = |state: &TeamState| Some((TeamKey::of(&state.team_id), state.erased.last()?.0));
    let last_orders: BTreeMap<TeamKey, LedgerSeq> = states().filter_map(last_order).collect();
    let mut overdue: BTreeMap<TeamKey, Vec<LedgerSeq>> = BTreeMap::new();
    let mut contents: Contents<'_> = BTreeMap::new();
    for file in states().flat_map(|state| state.files.values()) {
        contents.entry(file.sha256).or_default().push(file);
    }
    for entry in listed {
        let path = entry.path.as_str();
        if live.contains(path) || salts.contains(path) {
            entry.irregular.iter().for_each(|what| report.fault(FaultCode::Unreadable, path, what));
            continue;
        }
        let is_scratch = path.strip_prefix(SCRATCH).is_some_and(|rest| rest.starts_with('/'));
        let removal = removed.get(path).copied();
        // A complete order leaves no file that a line removed before.
        let is_covered = |team| removal.is_none_or(|of| last_orders.get(team).is_some_and(|last| of.seq <= *last));
        let order = removal.and_then(|removal| removal.order.as_deref());
        let pending = order.filter(|order| is_unfinished(order));
        let order = order.filter(|_| pending.is_none());
        notice_unfinished(path, pending, report);
        // No program leaves a link or such a name outside `scratch/`, so its age excuses nothing.
        let is_young = entry.modified >= since && (entry.irregular.is_none() || is_scratch);
        let is_kept = order.is_none() && (is_young || removal.is_some_and(|removal| removal.at >= since));
        match ArchivePath::parse(path) {
            Some(ArchivePath::Manifest | ArchivePath::Ledger { .. } | ArchivePath::Heads { .. }) => {}
            Some(ArchivePath::LedgerManifest) if store.as_split().is_some() => {}
            // Skip snapshots: they are never the truth, and a wrong one only costs a full replay.
            Some(ArchivePath::Snapshot { .. } | ArchivePath::Table { .. } | ArchivePath::LedgerTable { .. }) => {}
            Some(ArchivePath::Data(_)) if is_kept && removal.is_some() => report.retired += 1,
            Some(ArchivePath::Data(place)) if !is_covered(&place.team) && is_intact(store, entry, &place) => {
                report.retired += 1;
                overdue.entry(place.team).or_default().extend(removal.map(|removal| removal.seq));
            }
            // A failed commit never leaves a file with the bytes and the role of a live file.
            Some(ArchivePath::Data(place))
                if is_kept && originals(store, entry, &contents).iter().all(|file| file.role != place.role) =>
            {
                report.unnamed += 1;
            }
            Some(ArchivePath::Salt { .. }) if is_kept => report.unnamed += 1,
            None if is_scratch && is_kept => report.unnamed += 1,
            // A vacuum can have removed the file since the listing. A name that is not UTF-8 cannot be read again.
            _ if entry.irregular.is_none() && matches!(store.read(path), Err(e) if e.is_not_found()) => {}
            _ => report_orphan(store, entry, (order, removal), &contents, report),
        }
    }
    overdue.into_iter().for_each(|(team, lines)| notice_overdue(&team, &lines, report));
    Ok(())
}

/// Names a file that the unfinished order `pending` replaced, or the record of an unfinished order.
fn notice_unfinished(path: &str, pending: Option<&str>, report: &mut VerifyReport) {
    let detail = match pending {
        Some(order) => format!("order {order} erased this file, but it still exists: give the order again"),
        None if is_order(path) => "`annals status` names this order: give it again".to_owned(),
        None => return,
    };
    report.notice(FaultCode::UnfinishedErasure, path, detail);
}

/// Counts the files of a team that `lines` removed before the grace.
fn notice_overdue(team: &TeamKey, lines: &[LedgerSeq], report: &mut VerifyReport) {
    let Some(last) = lines.iter().max() else { return };
    let files = lines.len();
    let detail = format!("{files} files exist that lines up to {last} removed before the grace: run annals vacuum");
    report.notice(FaultCode::RetiredFile, ledger_of(team), detail);
}

fn report_orphan(
    store: &dyn Store,
    entry: &Listed,
    (order, removal): (Option<&str>, Option<&Removal>),
    contents: &Contents<'_>,
    report: &mut VerifyReport,
) {
    let path = entry.path.as_str();
    let detail = match (order, removal) {
        (Some(order), _) => format!("order {order} erased this file, but it still exists: give the order again"),
        (_, Some(Removal { seq, .. })) => format!("altered, or erased after line {seq} removed it: run annals vacuum"),
        _ => format!("no ledger names this file of {} bytes", entry.bytes),
    };
    report.fault(FaultCode::OrphanFile, path, detail);
    if let Some(what) = &entry.irregular {
        return report.fault(FaultCode::Unreadable, path, what);
    }
    for original in originals(store, entry, contents) {
        let (code, what) = match store.read(&original.path) {
            Err(e) if e.is_not_found() => (FaultCode::PathMismatch, "has the content of the missing file"),
            _ => (FaultCode::DupFile, "is a copy of"),
        };
        report.fault(code, path, format!("the file {what} {}", original.path));
    }
}

/// Whether the file holds the bytes that its name states.
fn is_intact(store: &dyn Store, entry: &Listed, place: &DataPath) -> bool {
    let digest = || store.read(&entry.path).ok().and_then(|blob| blob.digest().ok());
    entry.irregular.is_none() && digest().is_some_and(|digest| digest.short() == place.hash)
}

/// The live files with the same bytes.
fn originals<'a>(store: &dyn Store, entry: &Listed, contents: &'a Contents<'a>) -> &'a [&'a FileEntry] {
    let is_candidate = contents.values().flatten().any(|file| file.bytes == entry.bytes);
    let digest = is_candidate.then(|| store.read(&entry.path).ok().and_then(|blob| blob.digest().ok())).flatten();
    digest.and_then(|digest| contents.get(&digest)).map_or(&[], Vec::as_slice)
}

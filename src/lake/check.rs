//! Compares a table with the ledgers at the lines that it names, file by file, and with the files themselves.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use strum::{IntoStaticStr, VariantNames};

use crate::archive::{Archive, FaultCode, FileEntry, LinesFile, TeamHead, VerifyFault, VerifyReport, version_path};
use crate::model::path::metadata_of;
use crate::model::{Digest, GRACE_MIN, LedgerSeq, TeamId, saturating_sum};
use crate::store::{Listed, Store};

use super::bounds::{Footer, read_footer};
use super::ledger_tables::altered_files;
use super::manifest::DataFile;
use super::publish::{FILES_DIGEST, TOTAL_FILES, TOTAL_ROWS, digest_of};
use super::reader_root::ReaderRoot;
use super::table::{Manifest, Table, content, hint_path, lines_path, manifest_files, read_hint};
use super::{LakeError, TableId};

/// The number of times that a check begins again because another process published during the check.
const TRIES_MAX: usize = 4;

/// The remedy for a missing file of the archive. A publication drops a file that the ledger no longer names.
const RESTORE: &str =
    "restore it from a back-up; if `annals verify` does not report FILE_MISSING for it, publish again";

/// The kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", prefix = "TABLE_", const_into_str)]
pub enum TableFault {
    /// A file is live at the lines, but the table does not name it.
    FileMissing,
    /// The table names a file that is not live at the lines, or names one twice.
    FileSurplus,
    /// The table names a file that does not exist.
    FileGone,
    /// The rows or bytes of a file differ from the ledger's, or its content differs from the hash in its name.
    Count,
    /// A bound is not the least or greatest value of its column.
    Bound,
    /// A version does not continue the version before it, or it names ledger lines that no ledger has.
    Forked,
    /// The hint points readers without a catalog to another version than the newest.
    Hint,
    /// A file of the metadata is missing, or is not this program's.
    Metadata,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub fault: TableFault,
    /// The path of a file, within the archive.
    pub object: String,
    pub detail: String,
}

/// The result of the check of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckedTable {
    pub table: String,
    pub version: u64,
    pub files: u64,
    pub rows: u64,
    pub differences: Vec<Difference>,
}

impl CheckedTable {
    fn note(&mut self, fault: TableFault, object: &str, detail: impl Into<String>) {
        self.differences.push(Difference { fault, object: object.to_owned(), detail: detail.into() });
    }
}

/// Adds the differences of all tables to the report on an archive.
pub fn verify_tables(archive: &Archive, report: &mut VerifyReport) {
    for table in TableId::all() {
        match check_with_retries(archive, table) {
            Ok(None) => {}
            Ok(Some(checked)) => report.add_table_faults(checked.differences.iter().map(|difference| VerifyFault {
                code: FaultCode::Table,
                object: difference.object.clone(),
                detail: format!("{}: {}", difference.fault.into_str(), difference.detail),
            })),
            // The report already names the fault of the ledger.
            Err(error) if !report.is_clean() => tracing::info!(%error, table = table.as_str(), "not checked"),
            Err(error) => report.add_table_faults([VerifyFault {
                code: FaultCode::Table,
                object: format!("tables/{}", table.as_str()),
                detail: error.to_string(),
            }]),
        }
    }
}

/// Checks a table, and changes nothing. `None`: the table was never published. A failure of the store is a difference of this
/// table: the others can be whole.
///
/// # Errors
/// When a ledger cannot be read.
pub fn check(archive: &Archive, id: TableId) -> Result<Option<CheckedTable>, LakeError> {
    match check_with_retries(archive, id) {
        Err(LakeError::Store(error)) => {
            let mut found = CheckedTable { table: id.as_str().to_owned(), ..CheckedTable::default() };
            found.note(TableFault::Metadata, &metadata_of(id.as_str()), error.to_string());
            Ok(Some(found))
        }
        checked => checked,
    }
}

/// Checks a table, and again while another process publishes it.
fn check_with_retries(archive: &Archive, id: TableId) -> Result<Option<CheckedTable>, LakeError> {
    for _ in 1..TRIES_MAX {
        let found = check_once(archive, id)?;
        let is_whole = found.as_ref().is_none_or(|found| found.differences.is_empty());
        // A publisher, or a vacuum after it, can change the metadata during the check.
        if is_whole || Table::newest(archive.store().as_ref(), id.as_str())? == found.as_ref().map(|it| it.version) {
            return Ok(found);
        }
    }
    check_once(archive, id)
}

fn check_once(archive: &Archive, id: TableId) -> Result<Option<CheckedTable>, LakeError> {
    let (store, name) = (archive.store().as_ref(), id.as_str());
    let mut found = CheckedTable { table: name.to_owned(), ..CheckedTable::default() };
    let table = match Table::read(store, name) {
        Ok(Some(table)) => table,
        Ok(None) => {
            // A publisher writes the hint after the version.
            let Some(hint) = read_hint(store, name)? else { return Ok(None) };
            let detail = format!("names version {hint}, and the table has no version: publish again");
            found.note(TableFault::Metadata, &hint_path(name), detail);
            return Ok(Some(found));
        }
        Err(LakeError::Damaged { path, reason }) => {
            found.note(TableFault::Metadata, &path, reason);
            return Ok(Some(found));
        }
        Err(other) => return Err(other),
    };
    found.version = table.version;
    let listed = store.list(&metadata_of(name))?;
    let Some(place) = ReaderRoot::of_table(name, &table.metadata.location) else {
        found.note(TableFault::Metadata, &table.path(), format!("is at {}", table.metadata.location));
        return Ok(Some(found));
    };
    check_history(store, &table, &listed, &mut found)?;
    check_metadata(store, &table, &place, &listed, &mut found)?;
    match table.manifests(store, &place) {
        Ok(manifests) => check_files(archive, id, &table, &place, &manifests, &mut found)?,
        Err(LakeError::Damaged { path, reason }) => found.note(TableFault::Metadata, &path, reason),
        Err(LakeError::Store(e)) if e.is_not_found() => found.note(TableFault::Metadata, &table.path(), e.to_string()),
        Err(other) => return Err(other),
    }
    Ok(Some(found))
}

/// Checks that the newest version continues the version before it, and that the hint points to it.
fn check_history(
    store: &dyn Store,
    table: &Table,
    listed: &[Listed],
    found: &mut CheckedTable,
) -> Result<(), LakeError> {
    let (path, version) = (table.path(), table.version);
    let parent = table.metadata.current().and_then(|snapshot| snapshot.parent_snapshot_id);
    let before = version_path(&table.name, version.saturating_sub(1));
    if version > 1
        && listed.iter().any(|entry| entry.path == before)
        && let Ok(before) = Table::read_version(store, &table.name, version - 1)
        && before.metadata.location == table.metadata.location
        && parent != Some(before.metadata.current_snapshot_id)
    {
        found.note(TableFault::Forked, &path, format!("does not continue version {}", version - 1));
    }
    let hint = read_hint(store, &table.name)?;
    let written = listed.iter().find(|entry| entry.path == path).map(|entry| entry.modified);
    // A publisher writes the hint after the version. The next publisher repairs a hint that is behind.
    let is_recent = written.is_none_or(|at| store.now().is_ok_and(|now| now.since(at) < GRACE_MIN));
    if hint != Some(version) && !(is_recent && hint.is_none_or(|hint| hint < version)) {
        let hint = hint.map_or_else(|| "no version".to_owned(), |hint| format!("version {hint}"));
        found.note(TableFault::Hint, &path, format!("is the newest, and the hint names {hint}: publish again"));
    }
    Ok(())
}

/// Checks that each file exists that a reader of a snapshot opens.
fn check_metadata(
    store: &dyn Store,
    table: &Table,
    place: &ReaderRoot,
    listed: &[Listed],
    found: &mut CheckedTable,
) -> Result<(), LakeError> {
    let there: BTreeSet<&str> = listed.iter().map(|entry| entry.path.as_str()).collect();
    let snapshots = &table.metadata.snapshots;
    let lists: Vec<_> = snapshots.par_iter().map(|snapshot| manifest_files(store, place, snapshot)).collect();
    for (snapshot, manifests) in snapshots.iter().zip(lists) {
        let mut needed: Vec<String> = place.path(&snapshot.manifest_list).into_iter().collect();
        needed.extend(lines_path(place, snapshot));
        match manifests {
            Ok(manifests) => needed.extend(manifests.into_iter().map(|manifest| manifest.path)),
            Err(LakeError::Damaged { path, reason }) => found.note(TableFault::Metadata, &path, reason),
            Err(LakeError::Store(e)) if e.is_not_found() => {}
            Err(other) => return Err(other),
        }
        for path in needed.iter().filter(|path| !there.contains(path.as_str())) {
            let detail = format!("is missing, and snapshot {} needs it", snapshot.snapshot_id);
            found.note(TableFault::Metadata, path, detail);
        }
    }
    Ok(())
}

/// Checks that the current snapshot names exactly the files that are live at its lines, and that it describes each correctly.
fn check_files(
    archive: &Archive,
    id: TableId,
    table: &Table,
    place: &ReaderRoot,
    manifests: &[Manifest],
    found: &mut CheckedTable,
) -> Result<(), LakeError> {
    let Some(live) = live_at_lines(archive, id, table, place, found)? else { return Ok(()) };
    let is_dataset = matches!(id, TableId::Dataset(_));
    let mut named: BTreeMap<&str, &DataFile> = BTreeMap::new();
    for entry in manifests.iter().flat_map(|manifest| &manifest.entries).filter(|entry| entry.is_live()) {
        let path = entry.file.path.as_str();
        if named.insert(path, &entry.file).is_some() {
            found.note(TableFault::FileSurplus, path, "is named twice");
        }
        if is_dataset && !live.contains_key(path) {
            found.note(TableFault::FileSurplus, path, "is not live at the lines that the table names");
        }
    }
    for (path, file) in live.iter().filter(|(path, _)| !named.contains_key(path.as_str())) {
        found.note(TableFault::FileMissing, path, format!("{} rows that the table does not name", file.rows));
    }
    (found.files, found.rows) = (named.len() as u64, saturating_sum(named.values().map(|file| file.rows)));
    let store = archive.store().as_ref();
    let (mut altered, mut remedy) = (BTreeSet::new(), RESTORE);
    if let TableId::LedgerTable(ledger_table) = id {
        (altered, remedy) = (altered_files(store, ledger_table)?, "publish again");
        check_summary(table, &named, found);
    }
    for path in &altered {
        let is_named = named.remove(path.as_str()).is_some();
        let fault = if is_named { TableFault::Count } else { TableFault::FileSurplus };
        found.note(fault, path, "does not have the content that its name says: delete this file, and publish again");
    }
    let schema = table.metadata.schema().ok_or_else(|| LakeError::damaged(&table.path(), "has no schema"))?;
    let files: Vec<&DataFile> = named.into_values().collect();
    let wrong = files.into_par_iter().map(|file| match read_footer(store, &file.path, schema) {
        Ok(footer) => Ok(compare(file, live.get(&file.path), &footer)),
        Err(LakeError::Store(e)) if e.is_not_found() => {
            Ok(vec![(TableFault::FileGone, file, format!("is missing: {remedy}"))])
        }
        Err(LakeError::Damaged { reason, .. }) => Ok(vec![(TableFault::Count, file, reason)]),
        Err(other) => Err(other),
    });
    for (fault, file, detail) in wrong.collect::<Result<Vec<_>, LakeError>>()?.into_iter().flatten() {
        found.note(fault, &file.path, detail);
    }
    Ok(())
}

/// Checks that the current snapshot names the files that its summary describes. The ledgers name no files of a ledger table.
fn check_summary(table: &Table, named: &BTreeMap<&str, &DataFile>, found: &mut CheckedTable) {
    let recorded = |key: &str| table.metadata.current().and_then(|snapshot| snapshot.summary.get(key));
    let number = |key: &str| recorded(key).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let (files, rows) = (number(TOTAL_FILES), number(TOTAL_ROWS));
    let has_same_files = recorded(FILES_DIGEST) == Some(&digest_of(named.keys().copied()));
    if (found.files, found.rows) != (files, rows) || !has_same_files {
        let is_short = (found.rows, found.files) < (rows, files);
        let fault = if is_short { TableFault::FileMissing } else { TableFault::FileSurplus };
        let (has_files, has_rows) = (found.files, found.rows);
        let place = metadata_of(&table.name);
        let detail = format!(
            "names {has_rows} rows in {has_files} files, not the {rows} in {files} of its summary: delete {place}, and \
             publish again"
        );
        found.note(fault, &table.path(), detail);
    }
}

fn compare<'f>(
    file: &'f DataFile,
    entry: Option<&FileEntry>,
    footer: &Footer,
) -> Vec<(TableFault, &'f DataFile, String)> {
    let mut wrong = Vec::new();
    let recorded = (file.rows, file.bytes);
    if recorded != (footer.rows, footer.bytes) || entry.is_some_and(|entry| recorded != (entry.rows, entry.bytes)) {
        let detail = format!("the table says {} rows in {} bytes, but the file differs", file.rows, file.bytes);
        wrong.push((TableFault::Count, file, detail));
    }
    for (side, recorded, is) in
        [("lower", &file.bounds.lower, &footer.bounds.lower), ("upper", &file.bounds.upper, &footer.bounds.upper)]
    {
        if recorded != is {
            let column = recorded.iter().zip(is).find(|(one, other)| one != other).map(|(one, _)| one.0);
            let column = column.map_or_else(|| "of another column".to_owned(), |id| format!("of column {id}"));
            wrong.push((TableFault::Bound, file, format!("the {side} bound {column} is not exact")));
        }
    }
    wrong
}

/// The files of a table that are live at the lines that the table names. `None`, and a fault: no ledger has these lines. The
/// ledgers name no files of the tables that are written whole.
fn live_at_lines(
    archive: &Archive,
    id: TableId,
    table: &Table,
    place: &ReaderRoot,
    found: &mut CheckedTable,
) -> Result<Option<BTreeMap<String, FileEntry>>, LakeError> {
    let path = table.metadata.current().and_then(|snapshot| lines_path(place, snapshot));
    let read = path.as_ref().map(|path| {
        let content = content(archive.store().as_ref(), path)?;
        serde_json::from_slice::<LinesFile>(&content).map_err(|e| LakeError::damaged(path, e))
    });
    let lines = match read {
        Some(Ok(lines)) if lines.archive_id == archive.id() => lines,
        Some(Ok(lines)) => {
            found.note(TableFault::Forked, &table.path(), format!("stands for archive {}", lines.archive_id));
            return Ok(None);
        }
        Some(Err(LakeError::Damaged { path, reason })) => {
            found.note(TableFault::Metadata, &path, reason);
            return Ok(None);
        }
        Some(Err(LakeError::Store(e))) if e.is_not_found() => return Ok(None),
        Some(Err(other)) => return Err(other),
        None => {
            found.note(TableFault::Forked, &table.path(), "names no ledger lines: another program wrote it");
            return Ok(None);
        }
    };
    let mut live = BTreeMap::new();
    for TeamHead { team_id, seq, head } in &lines.teams {
        let Some(files) = files_at(archive, team_id, *seq, head)? else {
            let detail = format!("names line {seq} of team {team_id} with the hash {head}, which no ledger has");
            found.note(TableFault::Forked, &table.path(), detail);
            return Ok(None);
        };
        live.extend(
            files.into_iter().filter(|file| TableId::Dataset(file.dataset) == id).map(|file| (file.path.clone(), file)),
        );
    }
    Ok(Some(live))
}

/// The team's live files after line `seq`. `None`: that line is missing, or has another hash than `head`.
fn files_at(
    archive: &Archive,
    team: &TeamId,
    seq: LedgerSeq,
    head: &Digest,
) -> Result<Option<Vec<FileEntry>>, LakeError> {
    let reader = archive.read(team)?;
    let state = reader.state();
    if state.seq == seq {
        return Ok((state.head == *head).then(|| state.files.values().cloned().collect()));
    }
    let lines = archive.lines(team, seq)?;
    let is_there = lines.lines.last().is_some_and(|line| (line.seq, line.sha256) == (seq, *head));
    Ok(is_there.then(|| lines.files.into_values().map(|file| file.entry).collect()))
}

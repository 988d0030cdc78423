//! Removes metadata that no snapshot of a table needs.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::archive::{Archive, ObsoleteFile, ObsoleteFiles, version_of, version_path};
use crate::model::path::{data_of, metadata_of};
use crate::model::{GRACE_MIN, Instant};
use crate::store::{Listed, Store};

use super::reader_root::ReaderRoot;
use super::table::{Table, hint_path, lines_path, manifest_entries, manifest_files, read_hint};
use super::{LakeError, TableId};

/// A reader opens an older version at once or never, so older versions stay for the shortest grace.
fn is_expired(entry: &Listed, now: Instant, grace: Duration) -> bool {
    let grace = if version_of(&entry.path).is_some() { GRACE_MIN } else { grace.max(GRACE_MIN) };
    now.since(entry.modified) > grace
}

/// The files of a table's metadata that no snapshot needs: files older than the grace, and younger ones.
///
/// # Errors
/// When the store fails, or the table is not this program's.
pub fn obsolete_files(archive: &Archive, table: &str) -> Result<ObsoleteFiles, LakeError> {
    let store = archive.store().as_ref();
    let now = store.now()?;
    // List before reading the newest version: a file that a publisher commits meanwhile is named or not listed.
    let mut listed = store.list(&metadata_of(table))?;
    if is_ledger_table(table) {
        listed.extend(store.list(&data_of(table))?);
    }
    let named = match Table::read(store, table)? {
        Some(newest) => named(archive, &newest)?,
        None => BTreeSet::new(),
    };
    let mut found = ObsoleteFiles::default();
    for entry in listed.into_iter().filter(|entry| !named.contains(&entry.path)) {
        let is_expired = is_expired(&entry, now, archive.grace());
        let file = ObsoleteFile { path: entry.path, bytes: entry.bytes };
        if is_expired { found.expired.push(file) } else { found.kept.push(file) }
    }
    Ok(found)
}

/// Removes the files that are older than the grace. Returns the removed files, and the kept younger ones.
///
/// # Errors
/// As [`obsolete_files`].
pub fn vacuum(archive: &Archive, table: &str) -> Result<ObsoleteFiles, LakeError> {
    let found = obsolete_files(archive, table)?;
    let paths: Vec<&str> = found.expired.iter().map(|file| file.path.as_str()).collect();
    archive.store().remove_all(&paths)?;
    Ok(found)
}

/// Removes old versions that no reader opens. Each version names all snapshots, so versions are the largest files.
///
/// # Errors
/// When the store fails.
pub fn drop_old_versions(store: &dyn Store, table: &str, newest: u64) -> Result<(), LakeError> {
    let now = store.now()?;
    let listed = store.list(&metadata_of(table))?;
    let is_old = |entry: &Listed| version_of(&entry.path).is_some_and(|version| version < newest);
    let old = listed.iter().filter(|entry| is_old(entry) && is_expired(entry, now, GRACE_MIN));
    let paths: Vec<&str> = old.map(|entry| entry.path.as_str()).collect();
    Ok(store.remove_all(&paths)?)
}

/// Whether the table has data files of its own, beside those of the archive.
fn is_ledger_table(table: &str) -> bool {
    matches!(TableId::named(table), Some(TableId::LedgerTable(_)))
}

/// All files that the snapshots of a version need.
fn named(archive: &Archive, table: &Table) -> Result<BTreeSet<String>, LakeError> {
    let damaged = |reason: String| LakeError::damaged(&table.path(), reason);
    let place = ReaderRoot::of_table(&table.name, &table.metadata.location);
    let place = place.ok_or_else(|| damaged(format!("is at {}", table.metadata.location)))?;
    let mut named = BTreeSet::from([table.path(), hint_path(&table.name)]);
    // A publisher that was killed before its last step leaves the hint at the version before.
    named.extend(read_hint(archive.store().as_ref(), &table.name)?.map(|hint| version_path(&table.name, hint)));
    for snapshot in &table.metadata.snapshots {
        named.insert(place.path(&snapshot.manifest_list).map_err(damaged)?);
        named.extend(lines_path(&place, snapshot));
        let manifests = manifest_files(archive.store().as_ref(), &place, snapshot)?;
        if is_ledger_table(&table.name) {
            for manifest in &manifests {
                let entries = manifest_entries(archive.store().as_ref(), &place, manifest)?;
                named.extend(entries.into_iter().map(|entry| entry.file.path));
            }
        }
        named.extend(manifests.into_iter().map(|manifest| manifest.path));
    }
    Ok(named)
}

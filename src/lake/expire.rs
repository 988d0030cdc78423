//! Removes metadata that no snapshot of a table needs.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::archive::{Archive, ObsoleteFiles, version_of, version_path};
use crate::model::path::{data_of, metadata_of};
use crate::model::{GRACE_MIN, Instant};
use crate::store::{Listed, Store};

use super::table::{Table, hint_path, lines_path, manifest_entries, manifest_files, read_hint};
use super::{LakeError, TableId};

/// The versions that a newer one replaced before the shortest grace: a reader opens a version at once or never. The age of
/// a version itself says nothing, because it can be the newest for a long time.
fn replaced_versions(listed: &[Listed], now: Instant) -> BTreeSet<String> {
    let mut versions: Vec<(u64, &Listed)> =
        listed.iter().filter_map(|entry| Some((version_of(&entry.path)?, entry))).collect();
    versions.sort_by_key(|(version, _)| *version);
    let replaced = versions.windows(2).filter(|pair| now.since(pair[1].1.modified) > GRACE_MIN);
    replaced.map(|pair| pair[0].1.path.clone()).collect()
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
    let (mut found, replaced) = (ObsoleteFiles::default(), replaced_versions(&listed, now));
    let grace = archive.grace().max(GRACE_MIN);
    for entry in listed.into_iter().filter(|entry| !named.contains(&entry.path)) {
        let is_expired = match version_of(&entry.path) {
            Some(_) => replaced.contains(&entry.path),
            None => now.since(entry.modified) > grace,
        };
        if is_expired { found.expired.push(entry) } else { found.kept.push(entry) }
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
    archive.store().remove(&paths)?;
    Ok(found)
}

/// Removes replaced versions that no reader opens. Each version names all snapshots, so versions are the largest files.
///
/// # Errors
/// When the store fails.
pub fn drop_replaced_versions(store: &dyn Store, table: &str) -> Result<(), LakeError> {
    let now = store.now()?;
    let replaced = replaced_versions(&store.list(&metadata_of(table))?, now);
    let paths: Vec<&str> = replaced.iter().map(String::as_str).collect();
    Ok(store.remove(&paths)?)
}

/// Whether the table has data files of its own, beside those of the archive.
fn is_ledger_table(table: &str) -> bool {
    matches!(TableId::named(table), Some(TableId::LedgerTable(_)))
}

/// All files that the snapshots of a version need.
fn named(archive: &Archive, table: &Table) -> Result<BTreeSet<String>, LakeError> {
    let damaged = |reason: String| LakeError::damaged(&table.path(), reason);
    let place = table.place()?;
    let mut named = BTreeSet::from([table.path(), hint_path(&table.name)]);
    // A publisher that was killed before its last step leaves the hint at the version before.
    named.extend(read_hint(archive.store().as_ref(), &table.name)?.map(|hint| version_path(&table.name, hint)));
    let store = archive.store().as_ref();
    let lists = table.metadata.snapshots.par_iter().map(|snapshot| manifest_files(store, &place, snapshot));
    let lists = lists.collect::<Result<Vec<_>, _>>()?;
    for (snapshot, manifests) in table.metadata.snapshots.iter().zip(lists) {
        named.insert(place.path(&snapshot.manifest_list).map_err(damaged)?);
        named.extend(lines_path(&place, snapshot));
        for manifest in manifests {
            // Snapshots share manifests: read each one once.
            if named.insert(manifest.path.clone()) && is_ledger_table(&table.name) {
                let entries = manifest_entries(store, &place, &manifest)?;
                named.extend(entries.into_iter().map(|entry| entry.file.path));
            }
        }
    }
    Ok(named)
}

//! The newest version of a table, and the files of its metadata.

use rayon::prelude::*;

use crate::archive::{LEDGERS, version_of, version_path};
use crate::model::path::{VERSION_HINT, metadata_of};
use crate::store::{Listed, Store, get, if_there};

use super::LakeError;
use super::manifest::{Entry, ManifestFile, decode_list, decode_manifest};
use super::metadata::{Snapshot, TableMetadata};
use super::reader_root::ReaderRoot;

/// The newest version of a table.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub version: u64,
    pub metadata: TableMetadata,
}

/// A manifest with its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub file: ManifestFile,
    pub entries: Vec<Entry>,
}

impl Table {
    /// The number of the newest version. `None`: the table was never published.
    ///
    /// # Errors
    /// When the store fails.
    pub fn newest(store: &dyn Store, name: &str) -> Result<Option<u64>, LakeError> {
        Ok(Self::newest_listed(store, name)?.and_then(|entry| version_of(&entry.path)))
    }

    /// The list's entry of the newest version. A table that was deleted and published again can use a number again.
    ///
    /// # Errors
    /// When the store fails.
    pub fn newest_listed(store: &dyn Store, name: &str) -> Result<Option<Listed>, LakeError> {
        let versions = store.list(&metadata_of(name))?.into_iter().filter(|entry| version_of(&entry.path).is_some());
        Ok(versions.max_by_key(|entry| version_of(&entry.path)))
    }

    /// The newest version.
    ///
    /// # Errors
    /// When the store fails, or the version is not this program's.
    pub fn read(store: &dyn Store, name: &str) -> Result<Option<Self>, LakeError> {
        let mut newest = Self::newest(store, name)?;
        while let Some(version) = newest {
            match Self::read_version(store, name, version) {
                Err(LakeError::Store(error)) if error.is_not_found() => {
                    // A publisher can replace and remove the version after the list.
                    let again = Self::newest(store, name)?;
                    if again == newest {
                        return Err(error.into());
                    }
                    newest = again;
                }
                read => return read.map(Some),
            }
        }
        Ok(None)
    }

    /// # Errors
    /// As [`Table::read`].
    pub fn read_version(store: &dyn Store, name: &str, version: u64) -> Result<Self, LakeError> {
        let path = version_path(name, version);
        let metadata = TableMetadata::decode(&path, &content(store, &path)?)?;
        Ok(Self { name: name.to_owned(), version, metadata })
    }

    pub fn path(&self) -> String {
        version_path(&self.name, self.version)
    }

    /// The address of the archive for which the table was published.
    ///
    /// # Errors
    /// [`LakeError::Damaged`] when the table's location is no address of this table.
    pub fn place(&self) -> Result<ReaderRoot, LakeError> {
        let location = &self.metadata.location;
        let place = ReaderRoot::of_table(&self.name, location);
        place.ok_or_else(|| LakeError::damaged(&self.path(), format!("is at {location}")))
    }

    /// The manifests of the current snapshot.
    ///
    /// # Errors
    /// When the store fails, or another program wrote a manifest.
    pub fn manifests(&self, store: &dyn Store, place: &ReaderRoot) -> Result<Vec<Manifest>, LakeError> {
        let listed = self.metadata.current().map(|snapshot| manifest_files(store, place, snapshot));
        let read = |file: ManifestFile| Ok(Manifest { entries: manifest_entries(store, place, &file)?, file });
        listed.transpose()?.unwrap_or_default().into_par_iter().map(read).collect()
    }
}

/// The manifests that a snapshot lists.
///
/// # Errors
/// When the store fails, or the list is not this program's.
pub fn manifest_files(
    store: &dyn Store,
    place: &ReaderRoot,
    snapshot: &Snapshot,
) -> Result<Vec<ManifestFile>, LakeError> {
    let at = |reason| LakeError::damaged(&snapshot.manifest_list, reason);
    let path = place.path(&snapshot.manifest_list).map_err(at)?;
    decode_list(place, &content(store, &path)?).map_err(at)
}

/// The entries of a manifest.
///
/// # Errors
/// When the store fails, or the manifest is not this program's.
pub fn manifest_entries(store: &dyn Store, place: &ReaderRoot, file: &ManifestFile) -> Result<Vec<Entry>, LakeError> {
    decode_manifest(place, &content(store, &file.path)?).map_err(|reason| LakeError::damaged(&file.path, reason))
}

/// The path of the file with the ledger lines of a snapshot.
pub fn lines_path(place: &ReaderRoot, snapshot: &Snapshot) -> Option<String> {
    snapshot.summary.get(LEDGERS).and_then(|address| place.path(address).ok())
}

/// The number of the version to which the hint points readers. `None`: the file is missing or damaged.
///
/// # Errors
/// When the store fails.
pub fn read_hint(store: &dyn Store, name: &str) -> Result<Option<u64>, LakeError> {
    let hint = if_there(store.read(&hint_path(name)))?;
    Ok(hint.and_then(|blob| std::str::from_utf8(&blob.to_bytes().ok()?).ok()?.trim().parse().ok()))
}

pub fn hint_path(name: &str) -> String {
    format!("{}/{VERSION_HINT}", metadata_of(name))
}

/// The whole content of a small file.
///
/// # Errors
/// When it is missing, or the store fails.
pub fn content(store: &dyn Store, path: &str) -> Result<Vec<u8>, LakeError> {
    Ok(get(store, path)?.to_vec())
}

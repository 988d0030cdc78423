//! The third step of a commit, and the whole of recovery: what the last line says is made so.

use super::ledger::Line;
use super::path::{ArchivePath, TeamKey, staging_of};
use super::store::{Blob, Store, StoreError, Verb};
use super::{ArchiveError, Body, FileEntry};

/// Where the file that a line adds as number `index` waits.
pub fn staged_path(key: &TeamKey, line: &Line, index: usize) -> String {
    ArchivePath::Staging { team: key.clone(), seq: line.seq, index }.to_string()
}

/// Moves what the line adds in place, then takes away what it removes. Done again, it changes nothing.
///
/// # Errors
/// When the store fails; the commit stands, and this is to be done again.
pub fn publish(store: &dyn Store, key: &TeamKey, line: &Line) -> Result<(), StoreError> {
    for (index, file) in line.body.adds.iter().enumerate() {
        store.publish(&staged_path(key, line, index), &file.path)?;
    }
    for path in &line.body.removes {
        store.remove(path)?;
    }
    Ok(())
}

/// Checks that every file of the last line is staged as it was written, or in place.
///
/// # Errors
/// [`ArchiveError::FileMissing`], [`ArchiveError::FileAltered`], or the store's.
pub fn check_staged(store: &dyn Store, key: &TeamKey, line: &Line) -> Result<(), ArchiveError> {
    for (index, file) in line.body.adds.iter().enumerate() {
        let staged = staged_path(key, line, index);
        match found(store, &staged)? {
            Some(blob) => {
                let digest = blob.digest().map_err(|e| StoreError::io(Verb::Read, &staged, e))?;
                if digest != file.sha256 {
                    return Err(altered(staged, &blob, digest.to_string(), file));
                }
            }
            None => match found(store, &file.path)? {
                Some(blob) if blob.size() == file.bytes => {}
                Some(blob) => return Err(altered(file.path.clone(), &blob, "not computed".to_owned(), file)),
                None => return Err(ArchiveError::FileMissing { path: file.path.clone(), seq: line.seq }),
            },
        }
    }
    Ok(())
}

/// Whether everything that a line adds is in place.
///
/// # Errors
/// When the store fails otherwise than by not finding a file.
pub fn is_in_place(store: &dyn Store, body: &Body) -> Result<bool, StoreError> {
    for file in &body.adds {
        if found(store, &file.path)?.is_none_or(|blob| blob.size() != file.bytes) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Empties a team's staging directory and returns how many files that were.
///
/// # Errors
/// When the store fails.
pub fn clear_staging(store: &dyn Store, key: &TeamKey) -> Result<usize, StoreError> {
    let listed = store.list(&staging_of(key))?;
    for entry in &listed {
        store.remove(&entry.path)?;
    }
    Ok(listed.len())
}

fn found(store: &dyn Store, path: &str) -> Result<Option<Blob>, StoreError> {
    match store.read(path) {
        Ok(blob) => Ok(Some(blob)),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

fn altered(path: String, blob: &Blob, found: String, file: &FileEntry) -> ArchiveError {
    ArchiveError::FileAltered { path, bytes: blob.size(), found, expected: file.sha256.to_string() }
}

//! A store of two places: one for the ledger, and one for all other files.
//!
//! An object lock can then protect the ledger, while vacuum, retention and erasure still remove data files.

use std::sync::Arc;

use crate::model::Instant;
use crate::model::path::{LEDGER, is_in_ledger};

use super::{Blob, FileWriter, Guard, Listed, Rewritten, Store, StoreError, Tail, Unerased, UnfinishedUpload};

/// An archive whose ledger lies elsewhere. Both places spell paths in the same way.
#[derive(Clone)]
pub struct SplitStore {
    data: Arc<dyn Store>,
    ledger: Arc<dyn Store>,
}

impl SplitStore {
    pub fn new(data: Arc<dyn Store>, ledger: Arc<dyn Store>) -> Self {
        Self { data, ledger }
    }

    fn of(&self, path: &str) -> &dyn Store {
        if is_in_ledger(path) { self.ledger.as_ref() } else { self.data.as_ref() }
    }
}

/// The paths of data files, and those of the ledger.
fn divided<'a>(paths: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    paths.iter().partition(|path| !is_in_ledger(path))
}

impl Store for SplitStore {
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        Ok(Box::new(DataWriter(self.data.create()?)))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        self.of(path).read(path)
    }

    fn read_listed(&self, path: &str, bytes: u64, tag: Option<&str>) -> Result<Blob, StoreError> {
        self.of(path).read_listed(path, bytes, tag)
    }

    fn forget(&self) {
        self.data.forget();
        self.ledger.forget();
    }

    /// The ledger's place also holds the files of its own locks and proofs, which do not belong to the archive.
    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        if directory == LEDGER {
            return self.ledger.list(LEDGER);
        }
        if !directory.is_empty() {
            return self.of(directory).list(directory);
        }
        let mut listed = self.data.list("")?;
        listed.retain(|entry| !is_in_ledger(&entry.path));
        listed.extend(self.ledger.list(LEDGER)?);
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listed)
    }

    fn remove_all(&self, paths: &[&str]) -> Result<(), StoreError> {
        let (data, ledger) = divided(paths);
        self.data.remove_all(&data)?;
        self.ledger.remove_all(&ledger)
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        self.of(path).append(path, tail, bytes)
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.of(path).create_new(path, bytes)
    }

    fn erase_all(&self, paths: &[&str]) -> Result<Vec<Unerased>, StoreError> {
        let (data, ledger) = divided(paths);
        let mut unerased = self.data.erase_all(&data)?;
        unerased.extend(self.ledger.erase_all(&ledger)?);
        Ok(unerased)
    }

    /// Takes the lock in both places: either one can be the disk whose lock fences other processes.
    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        Ok(Box::new((self.data.lock(name)?, self.ledger.lock(name)?)))
    }

    fn has_process_locks(&self) -> bool {
        self.data.has_process_locks() || self.ledger.has_process_locks()
    }

    /// The earlier of both clocks. By it no file looks older than it is, so `vacuum` removes no file too early.
    fn now(&self) -> Result<Instant, StoreError> {
        Ok(self.data.now()?.min(self.ledger.now()?))
    }

    /// Only data files and snapshots are uploaded in parts.
    fn unfinished_uploads(&self) -> Result<Vec<UnfinishedUpload>, StoreError> {
        self.data.unfinished_uploads()
    }

    fn abort_upload(&self, upload: &UnfinishedUpload) -> Result<(), StoreError> {
        self.data.abort_upload(upload)
    }

    /// Also reports each ledger file in the place of the data: no reader reads it.
    fn altered_parts(&self) -> Result<Vec<Rewritten>, StoreError> {
        let mut found = self.ledger.altered_parts()?;
        let what = "lies beside the data, but the ledger of this archive lies elsewhere";
        let strays = self.data.list(LEDGER)?.into_iter();
        found.extend(strays.map(|entry| Rewritten { path: entry.path, what: what.to_owned() }));
        Ok(found)
    }

    fn rewritten(&self) -> Result<Vec<Rewritten>, StoreError> {
        self.ledger.rewritten()
    }

    fn with_versions(&self, directory: &str) -> Result<Vec<String>, StoreError> {
        self.of(directory).with_versions(directory)
    }

    fn has_ledger_elsewhere(&self) -> bool {
        true
    }
}

/// An unfinished data file. A ledger file is never written as a whole: it is appended to, or created once.
struct DataWriter(Box<dyn FileWriter>);

impl std::io::Write for DataWriter {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        self.0.write(buffer)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl FileWriter for DataWriter {
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError> {
        if is_in_ledger(path) {
            return Err(StoreError::irregular(path, "a file of a ledger elsewhere is never replaced"));
        }
        self.0.finish(path)
    }
}

#[cfg(test)]
mod tests;

//! A store of two places: one for the ledger, and one for all other files.
//!
//! An object lock can then protect the ledger, while vacuum, retention and erasure still remove data files.

use std::sync::Arc;

use crate::model::Instant;
use crate::model::path::{LEDGER, is_in_ledger};

use super::{Blob, FileWriter, Guard, Listed, ObjectStore, Rewritten, Store, StoreError, Tail};

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

    /// The ledger files in the place of the data: no reader reads them.
    pub fn strays(&self) -> Result<Vec<Rewritten>, StoreError> {
        let what = "lies beside the data, but the ledger of this archive lies elsewhere";
        let strays = self.data.list(LEDGER)?.into_iter();
        Ok(strays.map(|entry| Rewritten { path: entry.path, what: what.to_owned() }).collect())
    }

    fn of(&self, path: &str) -> &dyn Store {
        if is_in_ledger(path) { self.ledger.as_ref() } else { self.data.as_ref() }
    }
}

impl Store for SplitStore {
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        Ok(Box::new(DataWriter(self.data.create()?)))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        self.of(path).read(path)
    }

    /// The ledger's place also holds the files of its own locks and proofs, which do not belong to the archive.
    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        if !directory.is_empty() {
            return self.of(&format!("{directory}/")).list(directory);
        }
        let mut listed = self.data.list("")?;
        listed.retain(|entry| !is_in_ledger(&entry.path));
        listed.extend(self.ledger.list(LEDGER)?);
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listed)
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        let (data, ledger): (Vec<&str>, Vec<&str>) = paths.iter().partition(|path| !is_in_ledger(path));
        self.data.remove(&data)?;
        self.ledger.remove(&ledger)
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        self.of(path).append(path, tail, bytes)
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.of(path).create_new(path, bytes)
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

    fn bucket_of(&self, path: &str) -> Option<&ObjectStore> {
        self.of(&format!("{path}/")).bucket_of(path)
    }

    fn as_split(&self) -> Option<&SplitStore> {
        Some(self)
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

//! Objects of a bucket on this machine's disk: the ledger lines and snapshots that a question would otherwise fetch again.
//!
//! A bucket's list shows a tag of each object's content, and other content has another tag. So a kept object is exact as long as
//! the list shows its tag.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::NamedTempFile;

use crate::model::Digest;

use super::super::Listed;

/// Larger objects are not kept.
pub(super) const KEPT_OBJECT_BYTES_MAX: u64 = 16 << 20;
const DOMAIN: &str = "annals kept object v1\n";
const DIGITS: usize = 64;

/// A directory of the cache, which evicts old files.
#[derive(Debug)]
pub(super) struct KeptObjects {
    directory: PathBuf,
    /// The address of the archive.
    location: String,
}

impl KeptObjects {
    pub(super) fn new(directory: &Path, location: String) -> Self {
        Self { directory: directory.to_owned(), location }
    }

    /// The content of a listed object, if it is kept and whole.
    pub(super) fn get(&self, object: &Listed) -> Option<Bytes> {
        let mut file = Bytes::from(fs::read(self.place(object)?).ok()?);
        let content = file.split_off(DIGITS.min(file.len()));
        let is_whole = file == Digest::of(&content).to_string().as_bytes() && content.len() as u64 == object.bytes;
        is_whole.then_some(content)
    }

    /// Keeps an object's content. A failure costs only another fetch.
    pub(super) fn put(&self, object: &Listed, content: &[u8]) {
        if let Some(place) = self.place(object)
            && let Err(error) = self.write(&place, content)
        {
            tracing::debug!(%error, "cannot keep {} in the cache", object.path);
        }
    }

    fn write(&self, place: &Path, content: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let mut file = NamedTempFile::new_in(&self.directory)?;
        file.write_all(Digest::of(content).to_string().as_bytes())?;
        file.write_all(content)?;
        file.persist(place)?;
        Ok(())
    }

    /// `None` for an object without a tag, and for a large one.
    fn place(&self, object: &Listed) -> Option<PathBuf> {
        let tag = object.tag.as_ref().filter(|_| object.bytes <= KEPT_OBJECT_BYTES_MAX)?;
        let identity = format!("{}\n{}\n{}\n{tag}", self.location, object.path, object.bytes);
        Some(self.directory.join(format!("{}.object", Digest::with_domain(DOMAIN, &[identity.as_bytes()]))))
    }
}

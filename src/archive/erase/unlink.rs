//! An unlinkable order also replaces the salts of the months whose rows it changes.
//!
//! The old salts are removed, so nobody can compare the digests of earlier lines with a guessed row any more. From then on, only
//! hashes and signatures attest what these lines say of the months. The line gives each affected file its new row digest; the
//! file itself and its hash stay.

use std::collections::BTreeSet;

use crate::model::Instant;
use crate::store::Store;

use super::super::salts::{DRAFTS_MONTH, Salts};
use super::super::table::{RowsDigest, digest_file};
use super::super::{ArchiveError, FileEntry};
use super::ResaltedFile;

/// The months whose salts an order can replace.
pub fn replaceable(months: BTreeSet<Instant>) -> BTreeSet<Instant> {
    months.into_iter().filter(|month| *month != DRAFTS_MONTH).collect()
}

/// The files whose row digests differ under `salts`.
pub fn resalted<'a>(
    store: &dyn Store,
    files: impl IntoIterator<Item = &'a FileEntry>,
    salts: &Salts,
) -> Result<Vec<ResaltedFile>, ArchiveError> {
    let mut changed = Vec::new();
    for file in files {
        let (_, digest) = digest_file(store, &file.path, file.dataset, salts)?;
        if digest != RowsDigest::from(file.rows_digest) {
            changed.push(ResaltedFile { path: file.path.clone(), rows_digest: digest.into() });
        }
    }
    changed.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changed)
}

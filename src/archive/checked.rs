//! Copies a file and compares it with the ledger.

use std::io::{Read, Write};

use sha2::{Digest as _, Sha256};

use crate::model::Digest;
use crate::store::{Store, StoreError, Verb};

use super::{ArchiveError, FileEntry};

const CHUNK_BYTES: usize = 1 << 17;

/// Copies a live file to `target`. After an error the caller deletes the copy.
///
/// # Errors
/// [`ArchiveError::FileAltered`] when the file differs from the ledger; when the store fails; the result of `failed` when
/// `target` cannot be written.
pub fn copy_checked<E: From<ArchiveError>>(
    store: &dyn Store,
    file: &FileEntry,
    target: &mut dyn Write,
    failed: impl Fn(std::io::Error) -> E,
) -> Result<(), E> {
    let not_read = |source| ArchiveError::from(StoreError::io(Verb::Read, &file.path, source));
    let mut reader = store.read(&file.path).map_err(ArchiveError::from)?.reader(0);
    let (mut hasher, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; CHUNK_BYTES]);
    loop {
        let read = reader.read(&mut buffer).map_err(not_read)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        bytes += read as u64;
        target.write_all(&buffer[..read]).map_err(&failed)?;
    }
    let found = Digest(hasher.finalize().into());
    if (found, bytes) == (file.sha256, file.bytes) {
        return Ok(());
    }
    Err(ArchiveError::FileAltered { path: file.path.clone(), bytes, found, expected: file.sha256 }.into())
}

//! Reads the end of stored ledger objects.

use super::super::{Listed, StoreError};
use super::bucket::Bucket;
use super::names::{self, Extension};

/// The first read of a file's last line takes this many bytes.
const END_BYTES: u64 = 64 << 10;

/// The number of the last append in a day's file: the last line's own number; for signatures, the number of lines.
pub(super) fn last_number(bucket: &Bucket, extension: Extension, file: &Listed) -> Result<u64, StoreError> {
    let (path, size) = (file.path.as_str(), file.bytes);
    if extension == Extension::Heads {
        let content = bucket.get(path)?.ok_or_else(|| missing(path, "the list"))?;
        return Ok(memchr::memchr_iter(b'\n', &content).count() as u64);
    }
    for most in [END_BYTES, size] {
        let end = match bucket.keeps(file) {
            true => bucket.get_listed(file)?,
            false => bucket.get_end(path, size, most)?,
        };
        let end = end.ok_or_else(|| missing(path, "the list"))?;
        let Some(lines) = end.strip_suffix(b"\n") else {
            return Err(StoreError::irregular(path, "does not end with a whole line"));
        };
        let begin = memchr::memrchr(b'\n', lines).map(|at| at + 1);
        let Some(begin) = begin.or((end.len() as u64 == size).then_some(0)) else { continue };
        return names::number_in_line(&lines[begin..])
            .ok_or_else(|| StoreError::irregular(path, "its last line has no number"));
    }
    Err(StoreError::irregular(path, "holds no whole line"))
}

pub(super) fn missing(path: &str, seen: &str) -> StoreError {
    StoreError::irregular(path, format!("is missing, but {seen} exists"))
}

//! The number of some rows, and the sum of their digests. The rules of a commit compare these sums.

use super::table::RowsDigest;
use super::{FileEntry, SessionsMark, SessionsRecord};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowsSum {
    pub rows: u64,
    pub digest: RowsDigest,
}

impl RowsSum {
    pub fn new(rows: u64, digest: impl Into<RowsDigest>) -> Self {
        Self { rows, digest: digest.into() }
    }

    pub fn of_files<'a>(files: impl IntoIterator<Item = &'a FileEntry>) -> Self {
        let sums = files.into_iter().map(|file| Self::new(file.rows, file.rows_digest));
        sums.fold(Self::default(), Self::plus)
    }

    /// The rows of both. A hostile ledger can contain any number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { rows: self.rows.saturating_add(other.rows), digest: self.digest.plus(other.digest) }
    }

    /// These rows without the rows of `other`.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self { rows: self.rows.saturating_sub(other.rows), digest: self.digest.less(other.digest) }
    }
}

impl SessionsRecord {
    pub(super) fn new(mark: SessionsMark, replaced: RowsSum, added: RowsSum) -> Self {
        let (replaced_digest, added_digest) = (replaced.digest.into(), added.digest.into());
        Self { mark, replaced: replaced.rows, replaced_digest, added: added.rows, added_digest }
    }

    pub(super) fn sums(&self) -> (RowsSum, RowsSum) {
        (RowsSum::new(self.replaced, self.replaced_digest), RowsSum::new(self.added, self.added_digest))
    }
}

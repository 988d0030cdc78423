//! The record of an erasure in a ledger line. It never names the subject.

use serde::{Deserialize, Serialize};

use crate::model::{Dataset, Digest, Instant};

use crate::archive::ledger::rows_sum::RowsSum;

/// Bytes of an order's name.
const ORDER_BYTES_MAX: usize = 64;

/// An order that a line carries out. Each added file replaces one removed file, and differs from it only in the replaced rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedRecord {
    /// The name that the user gave the order.
    pub order: String,
    pub at: Instant,
    /// Keyed digests of the subject's values, sorted: an order has the same subject in every team. The salt of 1970-01 is the key.
    pub subjects: Vec<Digest>,
    /// Empty if the line only fences other writers, before the order removes files that no line names.
    pub parts: Vec<ErasedPart>,
    /// The files whose row digests change because the line replaces salts. Their bytes stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resalted: Vec<ResaltedFile>,
}

impl ErasedRecord {
    pub fn replaced_salts(&self) -> bool {
        !self.resalted.is_empty()
    }
}

/// The row digest of a live file under the new salts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResaltedFile {
    pub path: String,
    pub rows_digest: Digest,
}

/// The changes in one dataset. The digest of the removed files, minus `erased_digest`, plus `replaced_digest`, is the digest of the
/// added files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedPart {
    pub dataset: Dataset,
    pub files: u64,
    /// The number of replaced rows.
    pub rows: u64,
    /// The sum of the digests of these rows before the order.
    pub erased_digest: Digest,
    /// The sum of the digests of these rows after the order.
    pub replaced_digest: Digest,
    /// The times of the first and the last of these rows; `None` if no row has a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Instant>,
}

impl ErasedPart {
    /// The rows before the order.
    pub(super) fn erased(&self) -> RowsSum {
        RowsSum::new(self.rows, self.erased_digest)
    }

    /// The same rows after the order.
    pub(super) fn replaced(&self) -> RowsSum {
        RowsSum::new(self.rows, self.replaced_digest)
    }
}

/// Checks the name of an order. The ledger and each rewritten row hold it.
pub fn check_order(text: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'#');
    match text.len() {
        0 => Err("it is empty".to_owned()),
        1..=ORDER_BYTES_MAX if text.bytes().all(is_plain) => Ok(()),
        1..=ORDER_BYTES_MAX => Err("it has other characters than letters, digits and -_./#".to_owned()),
        length => Err(format!("it has {length} characters, more than the limit of {ORDER_BYTES_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_id_is_one_short_word() {
        for good in ["DPO-12", "2026/11#7", "a", &"x".repeat(64)] {
            assert_eq!(check_order(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "a b", "ann@example.com", "Zoë", "a\n", &"x".repeat(65)] {
            assert!(check_order(bad).is_err(), "{bad}");
        }
    }
}

//! What a ledger line says of an erasure: never of whom.

use serde::{Deserialize, Serialize};

use crate::model::{Digest, Instant};

use super::super::Dataset;

/// Bytes of an order's name.
const ORDER_BYTES_MAX: usize = 64;

/// An order that a line carries out. What the line removes stands in what it adds, file by file, with these rows replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedRecord {
    /// As whoever ordered it names it.
    pub order: String,
    pub at: Instant,
    /// Keyed digests of the subject's values, in order: the same order is of the same subject. The salt of 1970-01 is the key.
    pub subjects: Vec<Digest>,
    pub parts: Vec<ErasedPart>,
}

/// What it changed of one dataset: the digest of the rows removed, less `erased_digest`, with `replaced_digest`, is that of the
/// rows added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedPart {
    pub dataset: Dataset,
    pub files: u64,
    /// Rows that were replaced, each by one.
    pub rows: u64,
    /// The sum of the digests of the rows as they were.
    pub erased_digest: Digest,
    /// And as they are.
    pub replaced_digest: Digest,
    /// The times of the first and the last of these rows; none where no row has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Instant>,
}

/// Whether the text may name an order: it stands in the ledger, and in each row that was rewritten.
///
/// # Errors
/// What is wrong with it.
pub fn check_order(text: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'#');
    match text.len() {
        0 => Err("it is empty".to_owned()),
        1..=ORDER_BYTES_MAX if text.bytes().all(is_plain) => Ok(()),
        1..=ORDER_BYTES_MAX => Err("it holds other characters than letters, digits and -_./#".to_owned()),
        length => Err(format!("it has {length} characters, and {ORDER_BYTES_MAX} is the most")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_named_by_a_short_word() {
        for good in ["DPO-12", "2026/11#7", "a", &"x".repeat(64)] {
            assert_eq!(check_order(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "a b", "ann@example.com", "Zoë", "a\n", &"x".repeat(65)] {
            assert!(check_order(bad).is_err(), "{bad}");
        }
    }
}

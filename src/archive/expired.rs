//! What a line says of rows that outlived their class and went.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{Digest, Instant, InventoryPart, LedgerSeq, Retained};

use super::Dataset;

/// A month of a dataset whose rows went under a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpiredRecord {
    /// The class that they outlived: `connections = 7y`.
    pub policy: String,
    /// The moment at which they were judged.
    pub at: Instant,
    pub dataset: Dataset,
    /// The first instant of the month.
    pub month: Instant,
    /// Files that went; of sessions, those that went with no other in their place.
    pub files: u64,
    pub rows: u64,
    /// The sum of the digests of the rows.
    pub rows_digest: Digest,
}

/// Months of datasets that went, each with the line that says so.
pub type Expired = BTreeMap<(Dataset, Instant), (LedgerSeq, ExpiredRecord)>;

/// Why rows may not go.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpiryError {
    #[error("{dataset} of {}: {policy:?} is no policy of theirs", month.month())]
    Policy { dataset: Dataset, month: Instant, policy: String },
    #[error("{dataset} of {} are due under {policy:?} at {due}, and were judged at {at}", month.month())]
    Early { dataset: Dataset, month: Instant, policy: String, due: Instant, at: Instant },
    #[error("{dataset} of {} were judged at {at}, after the line of {line}", month.month())]
    Ahead { dataset: Dataset, month: Instant, at: Instant, line: Instant },
    #[error("{dataset} of {} are under the hold {hold}", month.month())]
    Held { dataset: Dataset, month: Instant, hold: String },
    #[error("{dataset} of {} expire twice, or at no month's beginning", month.month())]
    Twice { dataset: Dataset, month: Instant },
    #[error("{dataset} of {}: the line says {said} files and rows with digest, {found} go", month.month())]
    Differs { dataset: Dataset, month: Instant, said: String, found: String },
    #[error("{path}: of an expired month, and it stays")]
    Stays { path: String },
    #[error("{path}: added to a month that has expired")]
    Back { path: String },
    #[error("{dataset} of {} have windows that are not final", month.month())]
    Open { dataset: Dataset, month: Instant },
    #[error("{dataset} of {} tell how things stood when the class ended: no later month does", month.month())]
    Standing { dataset: Dataset, month: Instant },
    #[error("{rows} rows of sessions expire, {replaced} are replaced, or their connections stay")]
    Sessions { rows: u64, replaced: u64 },
}

impl ExpiryError {
    /// Whether rows went that a policy or a hold keeps; else the line does not agree with itself.
    pub fn is_of_policy(&self) -> bool {
        use ExpiryError::{Ahead, Early, Held, Policy};
        matches!(self, Policy { .. } | Early { .. } | Ahead { .. } | Held { .. })
    }
}

/// Whose class a dataset has.
pub fn retained(dataset: Dataset) -> Retained {
    match dataset {
        Dataset::Activity => Retained::Activity,
        Dataset::Connections | Dataset::Sessions => Retained::Connections,
        Dataset::Billing => Retained::Billing,
        Dataset::Quarantine => Retained::Quarantine,
        Dataset::Inventory(_) => Retained::Inventory,
    }
}

/// The datasets of a class whose months go as whole files; sessions are not among them.
pub fn datasets_of(of: Retained) -> Vec<Dataset> {
    match of {
        Retained::Activity => vec![Dataset::Activity],
        Retained::Connections => vec![Dataset::Connections],
        Retained::Billing => vec![Dataset::Billing],
        Retained::Quarantine => vec![Dataset::Quarantine],
        Retained::Inventory => InventoryPart::ALL.into_iter().map(Dataset::Inventory).collect(),
    }
}

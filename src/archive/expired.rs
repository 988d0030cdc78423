//! The ledger's record of rows that a retention policy removed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{Dataset, Digest, Instant, InventoryPart, LedgerSeq, Retained};

/// A month of a dataset whose rows a retention policy removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpiredRecord {
    /// The policy that removed the rows: `connections = 7y`.
    pub policy: String,
    /// The time at which the writer applied the policy.
    pub at: Instant,
    pub dataset: Dataset,
    /// The first instant of the month.
    pub month: Instant,
    /// The number of removed files. For sessions: removed files that no other file replaces.
    pub files: u64,
    pub rows: u64,
    /// The sum of the digests of the rows.
    pub rows_digest: Digest,
}

/// The expired months of each dataset, with the ledger line that records the expiry.
pub type Expired = BTreeMap<(Dataset, Instant), (LedgerSeq, ExpiredRecord)>;

/// A line may not expire these rows.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpiryError {
    #[error("{dataset} of {}: {policy:?} is not a policy for this dataset", month.month())]
    Policy { dataset: Dataset, month: Instant, policy: String },
    #[error("{dataset} of {}: {policy:?} lets them expire at {due}, but the line expires them at {at}", month.month())]
    Early { dataset: Dataset, month: Instant, policy: String, due: Instant, at: Instant },
    #[error("{dataset} of {}: they expire at {at}, later than the line's time {line}", month.month())]
    Ahead { dataset: Dataset, month: Instant, at: Instant, line: Instant },
    #[error("{dataset} of {}: hold {hold} protects them", month.month())]
    Held { dataset: Dataset, month: Instant, hold: String },
    #[error("{dataset} of {}: they expire twice, or the record's time is not the start of a month", month.month())]
    Twice { dataset: Dataset, month: Instant },
    #[error("{dataset} of {}: the line records {said}, but removes {found}", month.month())]
    Differs { dataset: Dataset, month: Instant, said: String, found: String },
    #[error("{path}: the file belongs to an expired month, but the line does not remove it")]
    Stays { path: String },
    #[error("{path}: the line adds the file to an expired month")]
    Back { path: String },
    #[error("{dataset} of {}: some windows are not final", month.month())]
    Open { dataset: Dataset, month: Instant },
    #[error("{dataset} of {}: they hold the latest state, because no later month has any", month.month())]
    CurrentState { dataset: Dataset, month: Instant },
    #[error("{rows} session rows expire, but the line replaces {replaced}, or their connections do not expire")]
    Sessions { rows: u64, replaced: u64 },
}

impl ExpiryError {
    /// Whether the line removes rows that a policy or a hold protects. Other errors are contradictions within the line.
    pub fn is_of_policy(&self) -> bool {
        use ExpiryError::{Ahead, Early, Held, Policy};
        matches!(self, Policy { .. } | Early { .. } | Ahead { .. } | Held { .. })
    }
}

/// The retention class of a dataset.
pub fn retained(dataset: Dataset) -> Retained {
    match dataset {
        Dataset::Activity => Retained::Activity,
        Dataset::Connections | Dataset::Sessions => Retained::Connections,
        Dataset::Billing => Retained::Billing,
        Dataset::Quarantine => Retained::Quarantine,
        Dataset::Inventory(_) => Retained::Inventory,
    }
}

/// The datasets of a class whose months expire as whole files: all except sessions.
pub fn datasets_of(of: Retained) -> Vec<Dataset> {
    match of {
        Retained::Activity => vec![Dataset::Activity],
        Retained::Connections => vec![Dataset::Connections],
        Retained::Billing => vec![Dataset::Billing],
        Retained::Quarantine => vec![Dataset::Quarantine],
        Retained::Inventory => InventoryPart::ALL.into_iter().map(Dataset::Inventory).collect(),
    }
}

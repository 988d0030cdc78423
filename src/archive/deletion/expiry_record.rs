//! The ledger's record of rows that a retention policy removed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{Dataset, Digest, Instant, LedgerSeq, Retained};

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
pub fn datasets_of(kind: Retained) -> impl Iterator<Item = Dataset> {
    Dataset::ALL.into_iter().filter(move |dataset| *dataset != Dataset::Sessions && retained(*dataset) == kind)
}

//! Issued tokens, and the counters of the rate limit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A token that is issued for one person, with the person's current rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Issued {
    pub team: String,
    pub user: String,
    pub read_only: bool,
}

impl Issued {
    /// The token's title in the token log and in `tokenInfo`.
    pub(super) fn title(&self) -> &'static str {
        if self.read_only { "sandbox read-only token of a person" } else { "sandbox token of a person" }
    }
}

/// The current minute of the sandbox's clock since the epoch, and each token's requests in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Minute {
    pub number: i64,
    pub requests: BTreeMap<String, u32>,
}

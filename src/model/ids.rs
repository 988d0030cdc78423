//! Identifiers. The service's ids are opaque strings; our own ids are numbers.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Text;

macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident($text:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name($text);

        impl $name {
            pub fn new(text: impl Into<$text>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        /// Compares and hashes like its text.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

opaque_id!(
    /// A team of the service: the scope of every operation.
    TeamId(Arc<str>)
);
opaque_id!(
    /// A computer of a team.
    DeviceId(Text)
);
opaque_id!(
    /// The `connectionID` that ties together the events of one connection.
    ConnectionId(Text)
);
opaque_id!(
    /// The service's id of an event; if it gives none, a content hash and occurrence number.
    EventId(Text)
);

/// A backfill looks up millions of connections, so the hash is a fast one.
pub type ConnectionIds = HashSet<ConnectionId, ahash::RandomState>;

/// The number of a ledger line, counted from 1 in each team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct LedgerSeq(pub u64);

impl LedgerSeq {
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for LedgerSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

//! The tables of the archive that are kept in files.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::Stream;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dataset {
    Activity,
    Connections,
    Billing,
    /// Derived from `connections`: a commit may replace rows.
    Sessions,
    Quarantine,
}

impl Dataset {
    pub const ALL: [Dataset; 5] =
        [Dataset::Activity, Dataset::Connections, Dataset::Billing, Dataset::Sessions, Dataset::Quarantine];

    pub const fn as_str(self) -> &'static str {
        match self {
            Dataset::Activity => "activity",
            Dataset::Connections => "connections",
            Dataset::Billing => "billing",
            Dataset::Sessions => "sessions",
            Dataset::Quarantine => "quarantine",
        }
    }
}

impl From<Stream> for Dataset {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Activity => Dataset::Activity,
            Stream::Connections => Dataset::Connections,
            Stream::Billing => Dataset::Billing,
        }
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

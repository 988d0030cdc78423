//! The tables of the archive that have files.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{InventoryPart, Stream};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dataset {
    Activity,
    Connections,
    Billing,
    /// Derived from `connections`: a commit can replace rows.
    Sessions,
    Quarantine,
    Inventory(InventoryPart),
}

impl Dataset {
    pub const ALL: [Dataset; 14] = [
        Dataset::Activity,
        Dataset::Connections,
        Dataset::Billing,
        Dataset::Sessions,
        Dataset::Quarantine,
        Dataset::Inventory(InventoryPart::Team),
        Dataset::Inventory(InventoryPart::Users),
        Dataset::Inventory(InventoryPart::SsoUsers),
        Dataset::Inventory(InventoryPart::Computers),
        Dataset::Inventory(InventoryPart::Groups),
        Dataset::Inventory(InventoryPart::Memberships),
        Dataset::Inventory(InventoryPart::Grants),
        Dataset::Inventory(InventoryPart::SignIn),
        Dataset::Inventory(InventoryPart::Tokens),
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Dataset::Activity => "activity",
            Dataset::Connections => "connections",
            Dataset::Billing => "billing",
            Dataset::Sessions => "sessions",
            Dataset::Quarantine => "quarantine",
            Dataset::Inventory(part) => part.table(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Dataset::ALL.into_iter().find(|dataset| dataset.as_str() == name)
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

impl Serialize for Dataset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Dataset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Dataset::named(&name).ok_or_else(|| serde::de::Error::custom(format!("unknown dataset {name:?}")))
    }
}

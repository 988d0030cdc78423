//! Which streams keep the texts of their events.

use serde::Deserialize;

use super::Stream;

/// What the archive keeps of a stream's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RawPolicy {
    /// The columns, and the text as served.
    #[default]
    Keep,
    /// The columns without `raw` and `payload`, and a keyed digest of the text.
    ColumnsOnly,
}

/// The policy of each stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Privacy {
    pub activity: RawPolicy,
    pub connections: RawPolicy,
    pub billing: RawPolicy,
}

impl Privacy {
    pub fn of(&self, stream: Stream) -> RawPolicy {
        match stream {
            Stream::Activity => self.activity,
            Stream::Connections => self.connections,
            Stream::Billing => self.billing,
        }
    }
}

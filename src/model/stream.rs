//! The three record streams that the service exposes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::TimeUnit;

/// The streams that Annals polls, in the order of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Stream {
    Activity,
    Connections,
    Billing,
}

impl Stream {
    pub const ALL: [Stream; 3] = [Stream::Activity, Stream::Connections, Stream::Billing];

    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }

    /// The unit of the event time in the service's answers.
    pub const fn time_unit(self) -> TimeUnit {
        match self {
            Stream::Activity => TimeUnit::Nanos,
            Stream::Connections => TimeUnit::Millis,
            Stream::Billing => TimeUnit::Seconds,
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Stream {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Stream::ALL
            .into_iter()
            .find(|s| s.as_str() == text)
            .ok_or_else(|| format!("unknown stream {text:?}: expected activity, connections or billing"))
    }
}

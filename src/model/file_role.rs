//! The role of a data file in the archive.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileRole {
    /// Rows of an unsettled window, or rows that a settled window gained later.
    Part,
    /// Rows of one settled window, or of several that share a file.
    Window,
    /// All rows of a sealed day.
    Day,
    /// All rows of a sealed month, without those of days sealed earlier. For sessions, also the rows of a year.
    Month,
    /// Rows that a sealed year, month or day gained later.
    Amendment,
    /// Sessions that can still receive events, in one file whatever their time, so that replacing them is cheap.
    Open,
}

impl FileRole {
    const ALL: [Self; 6] = [Self::Part, Self::Window, Self::Day, Self::Month, Self::Amendment, Self::Open];

    /// The role's name in paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Part => "part",
            Self::Window => "window",
            Self::Day => "day",
            Self::Month => "month",
            Self::Amendment => "amendment",
            Self::Open => "open",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

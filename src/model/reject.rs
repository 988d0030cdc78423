//! Why an event cannot become a row.

use strum::{IntoStaticStr, VariantNames};

/// A code for programs, which quarantine stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum RejectReason {
    NotUtf8,
    NotJson,
    NotAnObject,
    TimeMissing,
    TimeNotInteger,
    /// Outside 2000 to 2100.
    TimeOutOfRange,
    NoEventField,
    TwoEventFields,
}

impl RejectReason {
    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }
}

/// A reason, and a sentence for people. The sentence does not repeat the event's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    pub reason: RejectReason,
    pub detail: String,
}

impl Reject {
    pub fn new(reason: RejectReason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

//! The compact record of an activity event.

use crate::model::Instant;

use super::records::Record;

/// One activity event: its time in nanoseconds, and the number that seeds its other fields. Equal records are twins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ActivityRecord {
    pub at_nanos: i64,
    pub name: u64,
}

impl Record for ActivityRecord {
    fn at(self) -> Instant {
        Instant::from_nanos(self.at_nanos)
    }

    fn name(self) -> u64 {
        self.name
    }
}

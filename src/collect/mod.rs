//! One range of event time -> all its events: walk, confirm, split, join.
//!
//! Plain offset paging loses and doubles events when the list changes between two requests. A range is complete only when two
//! whole anchored walks in a row agree ([`SpanReader`]). [`TailReader`] reads the new events of an open window. [`Walk`] decides,
//! and the readers send the requests.

mod joined;
mod limits;
mod lists;
mod padded_range;
mod sample;
mod span;
mod split_budget;
mod tail;
mod walk;
mod walk_pages;

#[cfg(test)]
mod exhaustive;
#[cfg(test)]
mod tests;

pub use joined::{CountedEvent, Joined};
pub use limits::PageLimit;
pub use lists::{Lists, ReadStats};
pub use padded_range::PaddedRange;
pub use sample::sample;
pub use span::{RESTARTS_MAX, RangeOutcome, Segment, SpanReader, UNSTABLE_SECONDS_MAX};
pub use split_budget::{FAILED_RANGES_MAX, SplitBudget};
pub use tail::{TailChunk, TailEnd, TailReader, TailStart};
pub use walk::{ANCHORS_MAX, Anomalies, Step, Walk};

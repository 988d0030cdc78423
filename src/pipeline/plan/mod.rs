//! Plans: the ranges to read, the order of reading, and the cost. Pure functions of the archive's state and the service's clock.

mod coverage;
mod density;
mod estimate;
mod range_backoff;
mod span_planner;
mod stream_plan;
mod stream_windows;
mod urgency;

pub use coverage::{edge, read_to, settled_edge, windows_in_a_row};
pub use density::Density;
pub use estimate::{Estimate, estimate, estimate_of_team};
pub use range_backoff::RangeBackoff;
pub use span_planner::{SpanPlanner, first_stride, rescan_stride};
pub use stream_plan::{StreamPlan, lag, plan};
pub use stream_windows::{StreamWindows, each_window};
pub use urgency::{LastReading, SPAN_ASSUMED, Urgency};

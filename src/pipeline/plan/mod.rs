//! Plans: the ranges to read, the order of reading, and the cost. Pure functions of the archive's state and the service's clock.

pub mod coverage;
pub mod density;
pub mod estimate;
pub mod range_backoff;
pub mod span_planner;
pub mod stream_plan;
pub mod urgency;
pub mod window_index;

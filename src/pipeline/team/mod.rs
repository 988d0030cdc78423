//! The inputs of one team's round: the edges, the state in this process, and the room for its events.

pub mod context;
pub mod edges;
pub mod event_budget;
pub mod memory;
mod service_clock;

//! The inputs of one team's round: the edges, the state in this process, and the room for its events.

pub mod budget;
pub mod context;
pub mod edges;
pub mod memory;
mod service_clock;

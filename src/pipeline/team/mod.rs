//! What one team's round works with: the edges, what this process knows of the team, and the room for its events.

pub mod budget;
pub mod context;
pub mod edges;
pub mod deferred;
pub mod memory;
mod service_clock;

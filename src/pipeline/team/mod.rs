//! The inputs of one team's round: the edges, the state in this process, and the room for its events.

mod context;
mod edges;
mod event_budget;
mod memory;
mod service_clock;

pub use context::{Deferred, TeamContext};
pub use edges::{Edges, TeamEdges};
pub use event_budget::{EventBudget, Permit, split_off};
pub use memory::TeamMemory;

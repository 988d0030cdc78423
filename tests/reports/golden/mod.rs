//! A small archive with one of everything that the reports look for, written by the code that writes real ones from the
//! text in `tests/golden_world/`: events as served, rosters as served on several days.

pub mod answers;
pub mod expected;
mod roster;
pub mod world;

//! A small archive with one case of everything that the reports detect. The real writer makes it from the texts in
//! `tests/golden_world/`: events and rosters of several days, as the service sends them.

pub mod answers;
pub mod expected;
pub mod roster;
pub mod world;

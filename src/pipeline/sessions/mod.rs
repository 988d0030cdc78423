//! Sessions follow the archived events: in the commit of the events, or in chunks after a backfill.

mod catch_up;
pub mod update;

pub use catch_up::{Chunk, catch_up, catch_up_all};
pub use update::{NO_CONNECTION_ID, are_stale, correlate, defer_sessions};

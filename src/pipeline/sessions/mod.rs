//! Sessions follow the archived events: in the commit of the events, or in chunks after a backfill.

pub mod catch_up;
pub mod update;

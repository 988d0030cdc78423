//! Sessions follow the archived events: in the commit that brings the events, or chunk by chunk after a backfill.

pub mod catch_up;
pub mod update;

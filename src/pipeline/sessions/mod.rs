//! Sessions follow the archived events: in the commit that brings them, or part of time by part of time after a
//! backfill.

pub mod maker;
pub mod making;
pub mod part;
pub mod update;

//! The pipeline through the library: windows, rounds, gaps, sessions and inventory.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/mod.rs"]
mod common;

mod behind;
mod billing;
mod gaps;
mod inventory_versions;
mod inventory;
mod inventory_returns;
mod many_busy_teams;
mod normalize;
mod rescans;
mod round_sessions;
mod rounds;
mod sessions;
mod sign_in;
mod unread;
mod windows;

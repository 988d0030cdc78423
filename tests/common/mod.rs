//! Shared parts of the tests from outside.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(dead_code, reason = "each test program uses its own part")]

pub mod naive_sessions;
pub mod query_archive;
pub mod third_party;
pub mod python;
pub mod quick_clock;
pub mod scripted_server;
pub mod sandbox_client;
pub mod team_world;
pub mod virtual_clock;

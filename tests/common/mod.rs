//! Shared parts of the tests that run the program as a separate process.
#![allow(dead_code, reason = "each test program uses its own part")]

pub mod naive_sessions;
pub mod asked;
pub mod demanded;
pub mod python;
pub mod quick_clock;
pub mod scripted_server;
pub mod sandbox_client;
pub mod team_world;
pub mod virtual_clock;

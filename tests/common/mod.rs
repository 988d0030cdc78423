//! Shared parts of the tests that run the program as a separate process.
#![allow(dead_code, reason = "each test program uses its own part")]

pub mod faulty_store;
pub mod free_port;
pub mod naive_sessions;
pub mod query_archive;
pub mod third_party;
pub mod third_party_server;
pub mod python;
pub mod quick_clock;
pub mod scripted_server;
pub mod sandbox_client;
pub mod team_world;
pub mod virtual_clock;
pub mod wait;

/// Whether this system is Linux. On another system, the test of `untested` fails, or is skipped.
#[track_caller]
pub fn is_linux(untested: &str, reason: &str) -> bool {
    let is_linux = cfg!(target_os = "linux");
    if !is_linux {
        third_party::missing("linux", untested, reason);
    }
    is_linux
}

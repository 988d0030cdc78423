//! What the outside tests share.
#![allow(dead_code, reason = "each test program uses its own part")]

pub mod quick_clock;
pub mod scripted_server;

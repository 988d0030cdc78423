//! Simulates the whole program in virtual time, over a world that a seed makes.
//!
//! `plan` draws a world from the seed, `world` holds the truth, `service` and `store` are the edges with their
//! faults, `run` starts and kills processes, and `oracle` checks the laws.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the numbers of a small world are small"
)]
#![allow(dead_code, reason = "each test program uses its own part")]

pub mod answers;
#[path = "../faulty_service/chance.rs"]
pub mod chance;
pub mod clock;
pub mod computers;
pub mod random;
pub mod allowed_losses;
pub mod erasure;
pub mod faults;
#[path = "../common/faulty_store.rs"]
pub mod faulty_store;
#[path = "../faulty_service/behaviour.rs"]
pub mod behaviour;
pub mod laws;
#[path = "../common/naive_sessions.rs"]
pub mod naive_sessions;
pub mod oracle;
pub mod plan;
pub mod privacy;
pub mod readers;
pub mod report;
pub mod retention;
pub mod run;
pub mod requests;
pub mod service;
pub mod sessions;
pub mod fault_times;
pub mod event_faults;
pub mod slow_readers;
pub mod stalls;
pub mod store;
pub mod store_faults;
pub mod texts;
pub mod trace;
#[path = "../common/virtual_clock.rs"]
pub mod virtual_clock;
pub mod world;

use annals::model::Stream;

/// The streams that are read by windows. Billing shows only its ten newest entries.
pub const WINDOWED: [Stream; 2] = [Stream::Activity, Stream::Connections];

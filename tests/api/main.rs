//! The client of the service: answers, retries, the wire and TLS.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../faulty_service/mod.rs"]
mod faulty_service;
#[path = "../common/mod.rs"]
mod common;

mod faults;
mod http;
mod retry;
mod wire;
mod wire_faults;
mod wire_types;

//! `annals run`: its schedules in virtual time, and the program itself from outside.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;
mod reporting;
#[path = "run/mod.rs"]
mod run;

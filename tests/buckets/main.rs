//! Archives in buckets: every verb, faults, kills and fleets.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../faulty_service/mod.rs"]
mod faulty_service;
#[path = "../bucket_scene/mod.rs"]
mod bucket_scene;
#[path = "../common/mod.rs"]
mod common;

mod erasure;
mod faults;
mod fleets;
mod kills;
mod object_server;
mod split_ledger;
mod verbs;

//! `annals run`: its schedules in virtual time, and the program from outside.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../reporting/mod.rs"]
mod reporting;

mod alerts;
mod bucket_costs;
mod crowd;
mod deploy;
mod echo;
mod fleet;
mod kubernetes;
mod leftovers;
mod many;
mod outside;
mod page;
mod port;
mod program;
mod quiet;
mod restore;
mod shards;
mod systemd;
mod thousand;
mod trouble;
mod virtual_time;
mod weight;

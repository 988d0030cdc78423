//! `annals run`: its schedules in virtual time, and the program as a separate process.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/age.rs"]
mod age;
#[path = "../common/mod.rs"]
mod common;
#[path = "../reporting/mod.rs"]
mod reporting;

mod alerts;
mod bucket_costs;
mod clock_skew;
mod half_requests;
mod deploy;
mod echoed_token;
mod fleet;
mod kubernetes;
mod orphan_files;
mod many_teams;
mod lifecycle;
mod page;
mod port;
mod program;
mod quiet;
mod restore;
mod shards;
mod systemd;
mod team_list;
mod thousand_teams;
mod faults;
mod virtual_time;
mod memory;

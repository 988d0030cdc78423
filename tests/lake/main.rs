//! Open tables: published, checked and vacuumed by the program, served by the daemon, and read by independent engines.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/age.rs"]
mod age;
#[path = "../common/mod.rs"]
mod common;
#[path = "../faulty_service/mod.rs"]
mod faulty_service;
#[path = "../bucket_scene/mod.rs"]
mod bucket_scene;

mod buckets;
mod catalog;
mod daemon;
mod engines;
mod history;
mod planted;
mod publish;
mod readers;
mod snapshots;
mod publication_lag;
mod tables;
mod vacuum;
mod ledger_tables;

//! The files of an archive: size, damage, modes, and other programs as readers.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../reporting/mod.rs"]
mod reporting;
#[path = "../common/age.rs"]
mod age;

mod damage;
mod damage_table;
mod file_modes;
mod ledger_size;
mod irregular_files;
mod other_engine;
mod posted_head;
mod replaced_heads;
mod second_verifier;
mod size;
mod unsigned_lines;

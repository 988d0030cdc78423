//! The command line: help, doctor, the SQL shell, and the project's scripts.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/mod.rs"]
mod common;

mod queries;
mod command_line;
mod connect_python;
mod doctor;
mod places;
mod refusals;
mod sql_limits;
mod sql_script;
mod sql_shell;
mod supply_chain;

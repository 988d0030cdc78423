//! The sandbox, checked against the interface's document and its own truth.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/mod.rs"]
mod common;

mod data;
mod document;
mod faults;
mod history;
mod openapi;
mod python_client;
mod saved;
mod service;
mod story;

//! The sandbox: the documented service over synthetic teams, held to the interface and to its own truth.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../common/mod.rs"]
mod common;

mod data;
mod document;
mod faults;
mod history;
mod openapi;
mod outside;
mod saved;
mod service;
mod story;

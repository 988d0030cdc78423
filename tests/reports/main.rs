//! Reports and evidence packs: formats, goldens, periods, wrong use.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../reporting/mod.rs"]
mod reporting;
#[path = "../common/third_party.rs"]
mod third_party;

mod cases;
mod erasure;
mod formats;
mod golden;
mod goldens;
mod pack;
mod pack_browser;
mod pack_pseudonyms;
mod pack_review;
mod pages;
mod periods;

mod ties;
mod wrong_use;

//! `annals sync` and related verbs, run as a program against faulty services.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../faulty_service/mod.rs"]
mod faulty_service;
#[path = "../common/mod.rs"]
mod common;
#[path = "../reporting/mod.rs"]
mod reporting;
#[path = "../common/age.rs"]
mod age;

mod service_check;
mod billing;
mod bounds;
mod chaos;
mod crash;
mod days;
mod erasure;
mod erasure_again;
mod erasure_everything;
mod erasure_leftovers;
mod erasure_unlinkable;
mod faults;
mod minimisation;
mod changing_lists;
mod odd_events;
mod paging;
mod plan;
mod quarantine;
mod quotas;
mod ranges;
mod removals;
mod retention;
mod retention_daemon;
mod secrets;
mod signing;
mod status_and_plan;
mod team_names;
mod unlisted;
mod vacuum;
mod years;

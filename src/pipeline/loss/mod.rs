//! The loss when a computer is removed: its ids in an event's text, and its connections that were not read in time. Pure.

pub mod computer_ids;
pub mod reading;

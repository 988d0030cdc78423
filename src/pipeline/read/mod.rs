//! Readings of the three streams: the answers become events of windows, with a proof of the complete ranges.

pub mod billing_poll;
mod billing_snapshot;
mod open_windows;
mod round;
mod segments;
mod spans;
pub mod stream;

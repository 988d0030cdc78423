//! Readings of the three streams: what the service answers becomes events of windows, and a proof of what is complete.

pub mod billing_poll;
mod billing_snapshot;
mod segments;
mod open_windows;
mod round;
mod spans;
pub mod stream;

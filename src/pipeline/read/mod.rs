//! Readings of the three streams: the answers become events of windows, with a proof of the complete ranges.

mod behind_span;
mod billing_poll;
mod billing_snapshot;
mod open_windows;
mod round;
mod segments;
mod spans;
mod stream;

pub use behind_span::gaps_behind_span;
pub use billing_poll::poll_billing;
pub use round::RoundStart;
pub use stream::read_stream;

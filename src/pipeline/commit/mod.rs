//! From events to a commit: the batch that waits, the rows that the archive lacks, and what is worth noticing about
//! them.

pub mod batch;
pub mod change;
mod computer_events;
pub mod committer;
pub mod counts;
mod encoder;
pub mod flush;
pub mod inbox;
mod join;
pub mod piece;
pub mod quarantine;
pub mod seal;

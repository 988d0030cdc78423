//! From events to a commit: the waiting batch, the rows that the archive lacks, and the findings about them.

pub mod batch;
pub mod change;
mod computer_events;
pub mod committer;
pub mod counts;
pub mod flush;
pub mod inbox;
mod join;
mod notices;
pub mod quarantine;
pub mod seal;

//! From events to a commit: the waiting batch, the rows that the archive lacks, and the findings about them.

mod batch;
mod change;
mod computer_events;
mod committer;
mod counts;
mod flush;
mod inbox;
mod join;
mod notices;
mod quarantine;
mod seal;

pub use batch::{Batch, UNSTABLE};
pub use change::{StreamChange, WindowChange};
pub use committer::Committer;
pub use counts::CommitCounts;
pub use inbox::{Inbox, channel};
pub use quarantine::{RetriedByReason, retry_quarantine};
pub use seal::seal;

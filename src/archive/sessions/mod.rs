//! Sessions in files: the partition of each session, and the files that a commit rewrites.
//!
//! Open sessions, which can still receive events, share one file, which most commits replace. Finished sessions are stored by the
//! month of their first event, so a commit seldom rewrites a large file. After a year ends, they are stored by year, so a query
//! over many years opens few files.

mod change;
mod expiring;
mod lookup;
mod partition;

pub use change::plan;
pub use expiring::{ExpiringSessions, expiring_sessions};
pub use lookup::{HeldSession, Lookup};

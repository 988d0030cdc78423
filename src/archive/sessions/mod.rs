//! Sessions in files: where one stands, and which files a commit that replaces some becomes.
//!
//! Those to which more events are waited for stand in one file, which most commits replace; the others by the month of
//! their first event, so that a commit seldom has to touch a large file, and by its year when that is over, so that a question
//! over many years opens few.

mod change;
mod columns;
mod lookup;
mod pieces;
mod place;
mod reader;

pub use change::{SessionsChange, plan};
pub use columns::SessionColumns;
pub use lookup::{HeldSession, Lookup};
pub use reader::{LentSessions, SessionsReader};

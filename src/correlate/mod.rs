//! Sessions: joins the events of one connection. Pure.
//!
//! A session is a function of the set of its events, in any order. A later event, even years later, changes the session. If an
//! event changed in the service, only its latest revision counts.

mod session;

pub use session::{connection_of, is_connection, is_finished, session_from, session_of};

/// The version of the rules. If an archive's sessions have another version, they are made again.
pub const SESSION_RULES: u32 = 1;

#[cfg(test)]
mod tests;

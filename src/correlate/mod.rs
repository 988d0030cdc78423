//! Events to sessions: what the events of one connection say together. Pure.
//!
//! A session is a function of the set of its events, whatever their order: later events, and those that come years late,
//! make it anew. Of an event that changed upstream, the latest revision counts, once.

mod session;

pub use session::{connection_of, is_at_rest, is_connection, session_from, session_of};

/// The version of the rules. An archive whose sessions were made by others has them made anew.
pub const SESSION_RULES: u32 = 1;

#[cfg(test)]
mod tests;

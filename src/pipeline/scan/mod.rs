//! Looks at a team's people and computers, and what they leave in the archive.

pub mod requests;
pub mod backlog;
pub mod computers;
pub mod inventory;
pub mod record;
mod sign_in;

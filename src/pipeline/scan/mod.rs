//! Scans of a team's people and computers, and their records in the archive.

pub mod requests;
pub mod computers;
pub mod inventory;
pub mod record;
mod sign_in;

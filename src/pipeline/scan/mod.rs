//! Scans of a team's people and computers, and their records in the archive.

pub mod computers;
pub mod inventory;
pub mod record;
pub mod sign_in;

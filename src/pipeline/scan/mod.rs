//! Scans of a team's people and computers, and their records in the archive.

mod computers;
mod inventory;
mod record;
mod sign_in;

pub use computers::{ConnectionsRead, note_computers};
pub use inventory::{ScanRequest, scan_inventory};
pub use record::{SCAN_AGE, ScanRound, is_old};
pub use sign_in::REFUSALS_MAX;

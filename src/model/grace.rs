//! How long a file of the archive remains after no ledger line names it.

use std::time::Duration;

const DAY_SECONDS: u64 = 24 * 3_600;
/// The minimum grace. A commit takes at most an hour; the second hour covers wrong clocks and slow answers.
pub const GRACE_MIN: Duration = Duration::from_secs(2 * 3_600);
/// The default grace of an archive on a local disk.
pub const GRACE_LOCAL: Duration = Duration::from_secs(DAY_SECONDS);
/// The default grace of an archive in a bucket. Engines on other machines read it, and copying it takes longer.
pub const GRACE_BUCKET: Duration = Duration::from_secs(7 * DAY_SECONDS);

//! How long a file of the archive stays after no ledger line names it any more.

use std::time::Duration;

const DAY_SECONDS: u64 = 24 * 3_600;
/// The shortest grace. A commit takes an hour at most; the second hour covers wrong clocks and slow answers.
pub const GRACE_MIN: Duration = Duration::from_secs(2 * 3_600);
/// The grace of an archive on a local disk, unless the configuration says otherwise.
pub const GRACE_LOCAL: Duration = Duration::from_secs(DAY_SECONDS);
/// The same of an archive in a bucket. Engines on other machines read it, and a copy of it takes longer.
pub const GRACE_BUCKET: Duration = Duration::from_secs(7 * DAY_SECONDS);

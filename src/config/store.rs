//! What of the configuration depends on where the archive is.

use std::time::Duration;

use crate::model::{GRACE_BUCKET, GRACE_LOCAL, Location};

use super::Config;

const COMMIT_EVERY_LOCAL: Duration = Duration::from_secs(1);
const COMMIT_EVERY_BUCKET: Duration = Duration::from_secs(60);

impl Config {
    /// How long a file of the archive at `location` stays after no ledger line names it any more.
    pub fn grace_at(&self, location: &Location) -> Duration {
        self.grace.unwrap_or(match location {
            Location::Local(_) => GRACE_LOCAL,
            Location::Bucket(_) => GRACE_BUCKET,
        })
    }

    /// The shortest time between two commits of a team of the archive at `location`. A bucket's requests cost money.
    pub fn commit_every_at(&self, location: &Location) -> Duration {
        self.commit_every.unwrap_or(match location {
            Location::Local(_) => COMMIT_EVERY_LOCAL,
            Location::Bucket(_) => COMMIT_EVERY_BUCKET,
        })
    }
}

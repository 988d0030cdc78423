//! Settings whose defaults depend on the place of the archive.

use std::time::Duration;

use crate::model::{GRACE_BUCKET, GRACE_LOCAL, Location};

use super::Config;

const COMMIT_EVERY_LOCAL: Duration = Duration::from_secs(1);
const COMMIT_EVERY_BUCKET: Duration = Duration::from_secs(60);

impl Config {
    /// How long files of the archive at `location` remain after no ledger line names them.
    pub fn grace_at(&self, location: &Location) -> Duration {
        self.grace.unwrap_or(match location {
            Location::Local(_) => GRACE_LOCAL,
            Location::Bucket(_) => GRACE_BUCKET,
        })
    }

    /// The minimum time between two commits of a team at `location`. Requests to a bucket cost money.
    pub fn commit_every_at(&self, location: &Location) -> Duration {
        self.commit_every.unwrap_or(match location {
            Location::Local(_) => COMMIT_EVERY_LOCAL,
            Location::Bucket(_) => COMMIT_EVERY_BUCKET,
        })
    }
}

//! The requests per day of an archive in a bucket. `tests/daemon/bucket_costs.rs` compares these figures with counted days.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
/// Once an hour a ledger line records the read points of the streams.
const HOURLY_LINES: u64 = 24;
/// A commit with rows writes a file and a line.
const PUTS_A_COMMIT: u64 = 2;
/// A commit reads its files back, and asks the store for its time.
const GETS_A_COMMIT: u64 = 6;
const GETS_A_LINE: u64 = 2;
/// Schedules, such as `vacuum`, list the files.
const LISTS: u64 = 32;
/// A snapshot, after a hundred lines, lists the older ones.
const LISTS_A_HUNDRED_LINES: u64 = 3;

/// The requests of a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketRequests {
    pub puts: u64,
    pub gets: u64,
    pub lists: u64,
}

impl BucketRequests {
    /// The approximate requests of a team with this number of events a day, after its backfill.
    pub fn of_team(events: u64, commit_every: Duration) -> Self {
        let commits_max = DAY.as_secs() / commit_every.as_secs().max(1);
        let commits = events.min(commits_max);
        Self {
            puts: PUTS_A_COMMIT * commits + HOURLY_LINES,
            gets: GETS_A_COMMIT * commits + GETS_A_LINE * HOURLY_LINES,
            lists: LISTS + LISTS_A_HUNDRED_LINES * (commits + HOURLY_LINES) / 100,
        }
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { puts: self.puts + other.puts, gets: self.gets + other.gets, lists: self.lists + other.lists }
    }
}

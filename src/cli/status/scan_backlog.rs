//! The backlog of inventory scans, over all teams. Pure.

use std::time::Duration;

use crate::model::{Instant, InventoryPart};
use crate::pipeline::{InventoryStatus, SCAN_AGE};

/// Requests for the team, its computers, its users, and its SSO users.
const REQUESTS_OF_LISTS: u64 = 4;
/// A scan is in the backlog if it is this much later than its schedule.
const LATENESS: Duration = Duration::from_secs(3_600);

/// Teams that wait for a scan, and the requests that the scans take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanBacklog {
    pub teams: u64,
    pub requests: u64,
}

impl ScanBacklog {
    /// `user_info`: scans read the sign-in info of each user. `every`: the scheduled interval of scans. For a team with
    /// an unknown number of users, the mean of the others counts.
    pub fn of<'a>(
        inventories: impl IntoIterator<Item = &'a InventoryStatus>,
        user_info: bool,
        every: Duration,
        now: Instant,
    ) -> Self {
        let longest = every.max(SCAN_AGE) + LATENESS;
        let is_old = |at: Option<Instant>| at.is_none_or(|at| now.since(at) > longest);
        let (mut left, mut unknown, mut known, mut users) = (Self::default(), 0, 0, 0);
        for inventory in inventories {
            let lists = if is_old(inventory.scanned_at) { REQUESTS_OF_LISTS } else { 0 };
            let asks = if user_info && is_old(inventory.sign_in_scanned_at) { users_to_ask(inventory) } else { 0 };
            if inventory.scanned_at.is_none() {
                unknown += 1;
            } else {
                (known, users) = (known + 1, users + inventory.users);
            }
            left.teams += u64::from(lists + asks > 0);
            left.requests += lists + asks;
        }
        if user_info && known > 0 {
            left.requests += unknown * users / known;
        }
        left
    }

    /// The time for the backlog at this number of requests a second.
    pub fn seconds(self, requests_per_second: f64) -> u64 {
        Duration::from_secs(self.requests).div_f64(requests_per_second).as_secs()
    }
}

/// Users of the next round. An interrupted first round continues with the remaining users.
fn users_to_ask(inventory: &InventoryStatus) -> u64 {
    match inventory.sign_in_scanned_at {
        Some(_) if inventory.hidden.contains(&InventoryPart::SignIn) => 0,
        None => inventory.users.saturating_sub(inventory.users_asked),
        Some(_) => inventory.users,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;
    const DAY: u64 = 86_400;

    fn inventory(scanned: Option<u64>, asked: Option<u64>, users: u64, users_asked: u64) -> InventoryStatus {
        let ago = |ago: u64| Instant::from_seconds(NOW).minus(Duration::from_secs(ago));
        InventoryStatus {
            scanned_at: scanned.map(ago),
            sign_in_scanned_at: asked.map(ago),
            users,
            users_asked,
            ..InventoryStatus::default()
        }
    }

    #[test]
    fn the_backlog_counts_teams_and_users() {
        let of = |inventories: &[InventoryStatus], user_info, every| {
            let left = ScanBacklog::of(inventories, user_info, Duration::from_secs(every), Instant::from_seconds(NOW));
            (left.teams, left.requests)
        };
        let (fresh, never) = (inventory(Some(60), Some(60), 20, 20), inventory(None, None, 0, 0));
        let (cut, old) = (inventory(Some(60), None, 20, 15), inventory(Some(2 * DAY), Some(2 * DAY), 20, 20));
        assert_eq!(of(std::slice::from_ref(&fresh), true, DAY), (0, 0), "all is done");
        assert_eq!(of(std::slice::from_ref(&never), true, DAY), (1, 4), "the number of users is unknown");
        assert_eq!(of(std::slice::from_ref(&cut), true, DAY), (1, 5), "five users are left");
        assert_eq!(of(std::slice::from_ref(&cut), false, DAY), (0, 0), "nobody asks about users");
        assert_eq!(of(std::slice::from_ref(&old), true, DAY), (1, 24), "the lists and every user");
        assert_eq!(of(std::slice::from_ref(&old), true, 7 * DAY), (0, 0), "the schedule asks once a week");
        let hidden = InventoryStatus { hidden: vec![InventoryPart::SignIn], ..old.clone() };
        assert_eq!(of(&[hidden], true, DAY), (1, 4), "the token may not see how users sign in");
        assert_eq!(of(&[fresh, never, cut, old], true, DAY), (3, 4 + 5 + 24 + 20), "the mean of those known is 20");
    }

    #[test]
    fn the_time_is_the_number_of_requests_divided_by_the_rate() {
        assert_eq!(ScanBacklog { teams: 1_000, requests: 12_000 }.seconds(50.0), 240);
    }
}

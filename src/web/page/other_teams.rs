//! The archived teams that this daemon does not read: teams of other shards, and teams that no daemon reads any more.

use std::collections::BTreeSet;

use crate::model::{Shard, TeamId};
use crate::report::{TeamNames, plural};

use super::super::answer::health::DaemonHealth;
use super::super::input::link;

/// A team's name, and the address of its page.
pub struct TeamLink {
    pub label: String,
    pub href: String,
}

/// The teams that this daemon does not read, for a list.
#[derive(Default)]
pub struct OtherTeams {
    /// No daemon reads these teams.
    pub unread: Vec<TeamLink>,
    /// Teams of other shards, with the shard that reads each.
    pub others: Vec<(TeamLink, Shard)>,
    /// The number of further teams in `others`; empty if there are none.
    pub others_left: String,
}

impl OtherTeams {
    /// Selects from the archived teams, at most `shown` of each kind; of other shards' teams, only those with `search` in their name or
    /// id.
    pub fn of(held: &[TeamId], daemon: &DaemonHealth, names: &TeamNames, search: &str, shown: usize) -> Self {
        let read: BTreeSet<&str> = daemon.teams.iter().map(|team| team.team.as_str()).collect();
        let search = search.to_lowercase();
        let mut beside = Self::default();
        let mut left = 0;
        for team in held.iter().map(TeamId::as_str).filter(|team| !read.contains(team)) {
            let named = || TeamLink { label: names.with_id(team), href: link("/coverage", [("team", team)]) };
            match daemon.shard.other_owner(&team.into()) {
                None if beside.unread.len() < shown => beside.unread.push(named()),
                None => {}
                Some(owner) => {
                    let named = named();
                    if !named.label.to_lowercase().contains(&search) {
                        continue;
                    }
                    match beside.others.len() < shown {
                        true => beside.others.push((named, owner)),
                        false => left += 1,
                    }
                }
            }
        }
        if left > 0 {
            beside.others_left = plural(left, "more team");
        }
        beside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Instant;

    #[test]
    fn each_team_is_named_with_the_shard_that_reads_it() {
        let held: Vec<TeamId> = (0..40).map(|n| TeamId::new(format!("team-{n:02}"))).collect();
        let names = TeamNames::default();
        let daemon = |shard: &str| DaemonHealth::unread(Instant::EARLIEST, shard.parse().unwrap());
        let of = |shard: &str, search: &str, shown| OtherTeams::of(&held, &daemon(shard), &names, search, shown);
        let whole = of("1/1", "", 25);
        assert_eq!((whole.unread.len(), whole.others.len()), (25, 0));
        let second = of("2/4", "", 40);
        assert_eq!((second.unread.len() + second.others.len(), second.others_left.as_str()), (40, ""));
        assert!(second.others.iter().all(|(named, owner)| owner.owns(&named.label.as_str().into())));
        assert!(second.others.iter().all(|(_, owner)| owner.to_string() != "2/4"));
        let few = of("2/4", "", 5);
        assert_eq!(few.others.len(), 5);
        assert_eq!(few.others_left, format!("{} more teams", second.others.len() - 5));
        let (other, _) = second.others.last().unwrap();
        let found = of("2/4", &other.label.to_uppercase(), 5);
        assert_eq!(
            found.others.iter().map(|(named, _)| named.href.as_str()).collect::<Vec<_>>(),
            [other.href.as_str()]
        );
    }
}

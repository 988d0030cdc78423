//! Shards: several daemons share the teams.
//!
//! Rendezvous hashing assigns the teams: each shard has a weight for a team, and the shard with the largest weight owns it. An
//! additional shard takes over only the teams for which it has the largest weight; no other team moves.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::{Digest, TeamId};

/// The maximum number of shards.
pub const SHARDS_MAX: u16 = 1_024;
/// This prefix separates these hashes from other hashes. A change would give nearly every team another owner.
const DOMAIN: &str = "annals shard\n";

/// One shard of a fleet: `2/8` is the second of eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    number: u16,
    shards: u16,
}

impl Shard {
    /// The only shard of a fleet without shards: it owns every team.
    pub const WHOLE: Shard = Shard { number: 1, shards: 1 };

    /// Shard `number` of `shards`; numbers begin at 1. `None` if there is no such shard.
    pub fn new(number: u16, shards: u16) -> Option<Self> {
        ((1..=shards).contains(&number) && shards <= SHARDS_MAX).then_some(Self { number, shards })
    }

    /// From 1 to [`Shard::shards`].
    pub const fn number(self) -> u16 {
        self.number
    }

    /// The number of shards in the fleet.
    pub const fn shards(self) -> u16 {
        self.shards
    }

    /// Whether the fleet has only this shard.
    pub const fn is_whole(self) -> bool {
        self.shards == 1
    }

    /// Whether this shard reads the team. Exactly one shard of a fleet does.
    pub fn owns(self, team: &TeamId) -> bool {
        let own = self.weight(team);
        self.all().all(|shard| shard.weight(team) <= own)
    }

    /// The shard of the same fleet that reads the team.
    pub fn owner(self, team: &TeamId) -> Shard {
        self.all().max_by_key(|shard| shard.weight(team)).unwrap_or(Shard::WHOLE)
    }

    /// The owner of the team if it is another shard.
    pub fn other_owner(self, team: &TeamId) -> Option<Shard> {
        Some(self.owner(team)).filter(|owner| *owner != self)
    }

    fn all(self) -> impl Iterator<Item = Shard> {
        (1..=self.shards).map(move |number| Shard { number, ..self })
    }

    /// The shard number makes two weights differ even if the hashes are equal.
    fn weight(self, team: &TeamId) -> (Digest, u16) {
        let number = self.number.to_be_bytes();
        (Digest::with_domain(DOMAIN, &[&number, team.as_str().as_bytes()]), self.number)
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.shards)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse::<u16>().ok()).flatten()
        };
        let parts = text.split_once('/').and_then(|(of, shards)| Some((number(of)?, number(shards)?)));
        parts.and_then(|(of, shards)| Self::new(of, shards)).ok_or_else(|| {
            format!(
                "{text:?} is not a shard: expected K/N, shard K of N, where N is 1 to {SHARDS_MAX} and K is 1 to N; 2/8 is the \
                 second of eight"
            )
        })
    }
}

impl Serialize for Shard {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn teams(count: usize) -> Vec<TeamId> {
        (0..count).map(|n| TeamId::new(format!("team-{n:05}"))).collect()
    }

    fn shard(text: &str) -> Shard {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn shards_round_trip() {
        for text in ["1/1", "2/8", "8/8", "1024/1024"] {
            assert_eq!(shard(text).to_string(), text);
        }
        assert_eq!((shard("2/8").number(), shard("2/8").shards()), (2, 8));
        assert!(shard("1/1").is_whole() && !shard("1/2").is_whole());
    }

    #[test]
    fn an_invalid_shard_is_refused_with_its_text() {
        let wrong =
            ["", "x", "2", "/", "/8", "2/", "0/8", "9/8", "1/0", "0/0", "-1/8", "+1/8", " 1/8", "1/8 ", "1/2/3"];
        for text in wrong.into_iter().chain(["1/1025", "1/65537", "65537/65537", "1.0/8", "second/8"]) {
            let refused = text.parse::<Shard>().expect_err(text);
            assert!(refused.starts_with(&format!("{text:?} is not a shard: expected K/N")), "{refused}");
        }
    }

    #[test]
    fn each_team_has_exactly_one_owner() {
        for shards in [1, 2, 3, 8, 100] {
            for team in teams(100) {
                let all = (1..=shards).map(|number| Shard::new(number, shards).unwrap());
                let owners: Vec<Shard> = all.clone().filter(|shard| shard.owns(&team)).collect();
                assert_eq!(owners.len(), 1, "{team} of {shards}: {owners:?}");
                for shard in all {
                    assert_eq!(shard.owner(&team), owners[0]);
                    assert_eq!(shard.other_owner(&team), Some(owners[0]).filter(|_| shard != owners[0]));
                }
            }
        }
    }

    #[test]
    fn a_ninth_shard_moves_only_its_own_ninth_of_the_teams() {
        let (teams, eight, nine) = (teams(10_000), shard("1/8"), shard("1/9"));
        let moved: Vec<(Shard, Shard)> = teams
            .iter()
            .map(|team| (eight.owner(team), nine.owner(team)))
            .filter(|(before, after)| before.number() != after.number())
            .collect();
        assert!(moved.iter().all(|(_, after)| after.number() == 9));
        assert!((1_000..1_225).contains(&moved.len()), "{} of {} moved", moved.len(), teams.len());
    }

    #[test]
    fn shards_are_about_equal() {
        let mut sizes: BTreeMap<Shard, usize> = BTreeMap::new();
        for team in teams(10_000) {
            *sizes.entry(shard("1/8").owner(&team)).or_default() += 1;
        }
        assert_eq!(sizes.len(), 8);
        assert!(sizes.values().all(|size| (1_125..1_375).contains(size)), "{sizes:?}");
    }

    /// Another assignment in a new program version would move teams between running daemons.
    #[test]
    fn the_assignment_of_teams_never_changes() {
        let dealt = ["", "t1", "team-00000", "Lighthouse VFX", "équipe"].map(|team| shard("1/8").owner(&team.into()));
        assert_eq!(dealt.map(Shard::number), [4, 7, 2, 5, 3]);
    }
}

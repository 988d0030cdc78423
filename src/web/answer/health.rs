//! The state of all streams, from the daemon's memory: no file is opened for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::daemon::{Live, LiveSnapshot, Publication, Task, TaskLive, TeamLive};
use crate::model::{Instant, Shard, Stream, TeamId};
use crate::pipeline::{InventoryStatus, StreamStatus};
use crate::report::{TeamNames, printable};

/// The state of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Missed at least three scheduled reads, or was never read and the last try failed.
    Late,
    /// Not read yet.
    Waiting,
    /// Read as scheduled.
    Fresh,
}

/// One stream of one team.
#[derive(Debug, Clone, Serialize)]
pub struct StreamHealth {
    pub stream: Stream,
    pub health: Health,
    /// The time of the last success, by this machine's clock, since the daemon started.
    pub last_read_at: Option<Instant>,
    /// The error of the last attempt.
    pub error: Option<String>,
    pub failures: u32,
    pub next_due_at: Instant,
    pub begins: Option<Instant>,
    pub read_to: Option<Instant>,
    pub settled_to: Option<Instant>,
    pub lag_seconds: Option<u64>,
    pub seconds_to_loss: Option<u64>,
    pub seconds_kept: Option<u64>,
    pub windows: u64,
    pub open_windows: u64,
    pub unstable: Vec<String>,
    pub events: u64,
    pub late_events: u64,
    pub gaps: u64,
    pub deprecated_history: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct TeamHealth {
    pub team: String,
    /// The team's name; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_name: Option<String>,
    /// The shard that reads the team; `None` for a fleet without shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The time of this state.
    pub seen_at: Option<Instant>,
    /// The number of the ledger's last line.
    pub ledger_seq: Option<u64>,
    /// The hash of the last line.
    pub ledger_head: Option<String>,
    pub committed_at: Option<Instant>,
    pub bytes: Option<u64>,
    pub quarantined: Option<u64>,
    /// Commits since the daemon's start that another writer of the team won; `None` if this daemon does not read the team.
    pub commit_conflicts: Option<u64>,
    pub streams: Vec<StreamHealth>,
    pub inventory: Option<InventoryStatus>,
    /// The last expiry of each dataset, one sentence each.
    pub expired: Vec<String>,
    /// The ids of the active legal holds.
    pub holds: Vec<String>,
    /// Due months that something keeps, one sentence each.
    pub held_back: Vec<String>,
    /// The time from which sessions lack archived events; `None` if they lack none.
    pub sessions_lack: Option<Instant>,
}

/// The result of the last check of the archive against its ledger.
#[derive(Debug, Clone, Serialize)]
pub struct VerifyResult {
    pub at: Instant,
    pub faults: usize,
    pub first: Option<String>,
}

/// The state of everything at one moment.
#[derive(Debug, Clone)]
pub struct DaemonHealth {
    pub at: Instant,
    /// The shard that the daemon reads.
    pub shard: Shard,
    /// The service has listed its teams.
    pub is_listed: bool,
    pub teams: Vec<TeamHealth>,
    pub verified: Option<VerifyResult>,
    /// Why the last check of the archive did not end.
    pub check_error: Option<String>,
    pub published: Option<Publication>,
    /// The error of the last attempt to read the list of teams.
    pub teams_error: Option<String>,
}

/// Sums over all streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub teams: u64,
    /// Teams whose archive the daemon has not read since its start: the sums exclude their content.
    pub unseen: u64,
    pub streams: u64,
    pub fresh: u64,
    pub late: u64,
    pub waiting: u64,
    pub gaps: u64,
    pub quarantined: u64,
    pub events: u64,
    pub bytes: u64,
    /// The minimum over all streams.
    pub seconds_to_loss: Option<u64>,
}

impl DaemonHealth {
    /// A daemon that has read no team.
    #[cfg(test)]
    pub fn unread(at: Instant, shard: Shard) -> Self {
        Self {
            at,
            shard,
            is_listed: false,
            teams: Vec::new(),
            verified: None,
            check_error: None,
            published: None,
            teams_error: None,
        }
    }

    pub fn of(live: &Live, now: Instant) -> Self {
        let (shard, late) = (live.shard(), live.late(now));
        let is_listed = late.is_some();
        let late = late.unwrap_or_default();
        let late: BTreeSet<(TeamId, Stream)> = late.into_iter().map(|late| (late.team, late.stream)).collect();
        let LiveSnapshot { teams, verified, check_error, published, listing_error, .. } = live.snapshot();
        let own = Some(shard).filter(|shard| !shard.is_whole());
        let of_team = |(team, shown)| TeamHealth { shard: own, ..of_team(team, shown, &late, now) };
        let teams = teams.iter().map(of_team).collect();
        let first = |named: Vec<String>| named.into_iter().next();
        let verified =
            verified.map(|found| VerifyResult { at: found.at, faults: found.faults, first: first(found.named) });

        Self { at: now, shard, is_listed, teams, verified, check_error, published, teams_error: listing_error }
    }

    /// Adds the archived teams of other shards. The daemon knows only the shards that read them.
    pub fn add_others(&mut self, archived: &[TeamId]) {
        let others = archived.iter().filter_map(|team| Some((team, self.shard.other_owner(team)?)));
        let others: Vec<TeamHealth> = others.map(|(team, owner)| TeamHealth::unseen(team, Some(owner))).collect();
        self.teams.extend(others);
        self.teams.sort_by(|a, b| a.team.cmp(&b.team));
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals { teams: self.teams.len() as u64, ..Totals::default() };
        for team in &self.teams {
            totals.unseen += u64::from(team.ledger_seq.is_none());
            totals.quarantined += team.quarantined.unwrap_or(0);
            totals.bytes += team.bytes.unwrap_or(0);
            for stream in &team.streams {
                totals.streams += 1;
                match stream.health {
                    Health::Fresh => totals.fresh += 1,
                    Health::Late => totals.late += 1,
                    Health::Waiting => totals.waiting += 1,
                }
                totals.gaps += stream.gaps;
                totals.events += stream.events;
                let both = totals.seconds_to_loss.into_iter().chain(stream.seconds_to_loss);
                totals.seconds_to_loss = both.min();
            }
        }
        totals
    }

    /// Sets each team's name.
    pub fn set_names(&mut self, names: &TeamNames) {
        for team in &mut self.teams {
            team.team_name = names.name(&team.team).map(str::to_owned);
        }
    }

    /// Sorts teams that need attention first, then by name.
    pub fn worst_first(&mut self) {
        let place = |team: &TeamHealth| {
            let name = team.team_name.as_ref().unwrap_or(&team.team).to_lowercase();
            (team.urgency(), name, team.team.clone())
        };
        self.teams.sort_by_cached_key(place);
    }

    /// The errors of the last attempts, each with its number of streams.
    pub fn errors(&self) -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        for error in self.teams.iter().flat_map(|team| &team.streams).filter_map(|stream| stream.error.as_ref()) {
            *found.entry(reason(error).to_owned()).or_default() += 1;
        }
        found
    }
}

impl TeamHealth {
    /// A team without any information yet.
    fn unseen(team: &TeamId, shard: Option<Shard>) -> Self {
        Self { team: team.to_string(), shard, ..Self::default() }
    }

    /// The worst state of the team's streams.
    pub fn urgency(&self) -> Health {
        self.streams.iter().map(|stream| stream.health).min().unwrap_or(Health::Waiting)
    }
}

/// An error without its request, so that equal reasons of many requests are counted together.
fn reason(error: &str) -> &str {
    error.strip_prefix("GET ").and_then(|rest| rest.split_once(": ")).map_or(error, |(_, reason)| reason)
}

fn of_team(team: &TeamId, shown: &TeamLive, late: &BTreeSet<(TeamId, Stream)>, now: Instant) -> TeamHealth {
    let status = shown.status.as_ref();
    let aged = shown.seen_at.map_or(0, |at| now.since(at).as_secs());
    let tasks = shown.tasks.iter().filter_map(|(task, live)| match task {
        Task::Read(stream) => Some((*stream, live)),
        Task::Inventory => None,
    });
    let streams = tasks.map(|(stream, live)| {
        let archived = status.and_then(|status| status.streams.iter().find(|archived| archived.stream == stream));
        of_stream(stream, live, archived, late.contains(&(team.clone(), stream)), aged)
    });
    TeamHealth {
        seen_at: shown.seen_at,
        ledger_seq: status.map(|status| status.ledger_seq),
        ledger_head: status.map(|status| status.ledger_head.clone()),
        committed_at: status.and_then(|status| status.committed_at),
        bytes: status.map(|status| status.bytes),
        quarantined: status.map(|status| status.quarantined),
        commit_conflicts: Some(shown.tasks.values().map(|task| task.counts.conflicts).sum()),
        streams: streams.collect(),
        inventory: status.map(|status| status.inventory.clone()),
        expired: status.map_or_else(Vec::new, |status| status.expired.clone()),
        holds: status.map_or_else(Vec::new, |status| status.holds.clone()),
        held_back: status.map_or_else(Vec::new, |status| status.held_back.clone()),
        sessions_lack: status.and_then(|status| status.sessions_lack),
        ..TeamHealth::unseen(team, None)
    }
}

/// `aged` is the age of the status in seconds.
fn of_stream(
    stream: Stream,
    live: &TaskLive,
    archived: Option<&StreamStatus>,
    is_late: bool,
    aged: u64,
) -> StreamHealth {
    // Before its backfill, a stream counts as late for probes, but as waiting for people.
    let health = match (live.done_at, is_late, &live.error) {
        (None, _, None) => Health::Waiting,
        (_, true, _) | (None, false, Some(_)) => Health::Late,
        (Some(_), false, _) => Health::Fresh,
    };
    StreamHealth {
        stream,
        health,
        last_read_at: live.done_at,
        error: live.error.as_deref().map(printable),
        failures: live.job.failures,
        next_due_at: live.job.due,
        begins: archived.and_then(|archived| archived.begins),
        read_to: archived.and_then(|archived| archived.read_to),
        settled_to: archived.and_then(|archived| archived.settled_to),
        lag_seconds: archived.and_then(|archived| archived.lag_seconds).map(|lag| lag + aged),
        seconds_to_loss: archived.and_then(|archived| archived.seconds_to_loss).map(|left| left.saturating_sub(aged)),
        seconds_kept: archived.and_then(|archived| archived.seconds_kept),
        windows: archived.map_or(0, |archived| archived.windows),
        open_windows: archived.map_or(0, |archived| archived.open_windows),
        unstable: archived.map_or_else(Vec::new, |archived| archived.unstable.clone()),
        events: archived.map_or(0, |archived| archived.events),
        late_events: archived.map_or(0, |archived| archived.late),
        gaps: archived.map_or(0, |archived| archived.gaps),
        deprecated_history: archived.is_some_and(|archived| archived.deprecated_history),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::TeamStatus;

    #[test]
    fn a_team_shows_from_when_its_sessions_lack_events() {
        let now = Instant::from_seconds(1_800_000_000);
        let status = TeamStatus { sessions_lack: Some(now), ..TeamStatus::default() };
        let shown =
            of_team(&"t".into(), &TeamLive { status: Some(status), ..TeamLive::default() }, &BTreeSet::new(), now);
        assert_eq!(serde_json::json!(shown)["sessions_lack"], serde_json::json!(now));
    }
}

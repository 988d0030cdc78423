//! `annals status`: the state of each stream, from the archive alone.

mod published;
mod scan_backlog;
mod table;

use clap::Args;
use serde_json::json;

use crate::api::scans_per_second;
use crate::config::Config;
use crate::error::{Error, Exit};
use crate::lake::PublicationLag;
use crate::model::{Instant, Shard};
use crate::pipeline::{TeamStatus, status};
use crate::report::{Format, TeamNames, behind_sentence};

use super::output::{OutputArgs, counted};
use super::{Global, output, query, reading};

use scan_backlog::ScanBacklog;

/// The table shows this many teams without a problem, unless `--all` is given.
const HEALTHY_TEAMS_SHOWN: usize = 10;

/// Show for each team and stream: the end of the settled part, lag (the delay of reading), open windows, gaps, time to loss; teams
/// with a problem come first
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Show every team in the table, not only those with a problem and the first ten others
    #[arg(long)]
    all: bool,
    /// Print one JSON object for all teams, with more details than the table
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(global: &Global, args: &StatusArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let archive = query::open(&config)?;
    let now = reading::clock().now();
    let (mut teams, mut names) = (Vec::new(), TeamNames::default());
    let mut lag = PublicationLag::read(&archive);
    for team in archive.teams()? {
        let reader = archive.read(&team)?;
        teams.push(status(reader.state(), now));
        names.put_archived(&archive, reader.state());
        lag.add(reader.state());
    }
    let published = lag.finish(&archive)?;
    let shard = config.shard;
    let is_own = |team: &TeamStatus| shard.owns(&team.team.as_str().into());
    let pending: Vec<String> = archive.pending_orders()?.into_iter().map(|order| order.order).collect();
    let left = scan_backlog(&config, teams.iter().filter(|team| is_own(team)), now);
    let (output, threshold) = (&args.output, config.alerts.time_left);
    if args.json {
        let (archive, id) = (query::location(&config)?.to_string(), archive.id());
        let scans = left.map(|(left, rate)| scan_backlog_json(left, rate));
        let teams = named(&teams, &names, shard);
        let line = json!({
            "archive": archive, "archive_id": id, "at": now, "shard": shard, "scans": scans, "erasures_half_done": pending,
            "tables": published, "teams": teams
        });
        output::to(output.output.as_deref(), |out| writeln!(out, "{line:#}").map_err(Error::output))?;
        return Ok(Exit::Done);
    }
    let others: Vec<TeamStatus> = teams.extract_if(.., |team| !is_own(team)).collect();
    let others = table::OtherShardTeam::all(&others, shard);
    table::problems_first(&mut teams, threshold);
    let behind = teams.iter().filter_map(|team| Some(behind_sentence(&names.with_id(&team.team), team.sessions_lack?)));
    let kept = behind.chain(teams.iter().flat_map(|team| retention_lines(team, &names))).collect::<Vec<_>>();
    let message = [
        shard_text(shard, teams.len(), others.len()),
        left.and_then(|(left, rate)| left_text(left, teams.len(), rate)),
        pending_text(&pending),
    ];
    let tables = published::lines(&published, config.publish.schedule.as_ref(), now);
    let message = message.into_iter().flatten().chain(tables).chain(kept).collect::<Vec<_>>().join("\n");
    if output.format() == Format::Table {
        let healthy = if args.all { usize::MAX } else { HEALTHY_TEAMS_SHOWN };
        let text = table::text(&teams, &others, &names, threshold, healthy, now);
        let message = if message.is_empty() { message } else { message + "\n" };
        output::to(output.output.as_deref(), |out| write!(out, "{text}{message}").map_err(Error::output))?;
    } else {
        output.batch(&table::rows(&teams, &others, threshold, now))?;
        output::say(&message);
    }
    Ok(Exit::Done)
}

/// Erasure orders that are not complete.
fn pending_text(orders: &[String]) -> Option<String> {
    let named = orders.join(", ");
    (!orders.is_empty())
        .then(|| format!("unfinished erasure: {named}: run `annals erase` again with this order and its subject"))
}

/// The teams of this shard, if the fleet has shards.
fn shard_text(shard: Shard, own: usize, others: usize) -> Option<String> {
    let all = own + others;
    (!shard.is_whole())
        .then(|| format!("shard {shard}: it reads {own} of the archive's {}", counted(all as u64, "team")))
}

/// The last expiry of a team and its active holds. Expired rows are neither a gap nor missing.
fn retention_lines(team: &TeamStatus, names: &TeamNames) -> Vec<String> {
    let label = names.with_id(&team.team);
    let expired = team.expired.iter().map(|sentence| format!("team {label}: the last {sentence}"));
    let holds = (!team.holds.is_empty()).then(|| format!("team {label}: held by {}", team.holds.join(", ")));
    expired.chain(holds).collect()
}

/// The teams' ids and names, and in a fleet with shards the shard of each team.
fn named(teams: &[TeamStatus], names: &TeamNames, shard: Shard) -> Vec<serde_json::Value> {
    let one = |team: &TeamStatus| {
        let mut value = json!(team);
        value["team_name"] = json!(names.name(&team.team));
        if !shard.is_whole() {
            value["shard"] = json!(shard.owner(&team.team.as_str().into()));
        }
        value
    };
    teams.iter().map(one).collect()
}

/// The requests that the inventory scans still need, and their maximum rate; `None` if the configuration turns the inventory
/// off.
fn scan_backlog<'a>(
    config: &Config,
    teams: impl Iterator<Item = &'a TeamStatus>,
    now: Instant,
) -> Option<(ScanBacklog, Option<f64>)> {
    let every = config.schedule.inventory.interval(now);
    let inventories = teams.map(|team| &team.inventory);
    let left = ScanBacklog::of(inventories, config.inventory.user_info, every, now);
    config.inventory.enabled.then(|| (left, config.requests_per_second.map(scans_per_second)))
}

fn scan_backlog_json(left: ScanBacklog, rate: Option<f64>) -> serde_json::Value {
    let seconds = rate.map(|rate| left.seconds(rate));
    json!({"teams": left.teams, "requests": left.requests, "requests_per_second": rate, "seconds": seconds})
}

/// The time until every due inventory scan is done.
fn left_text(left: ScanBacklog, teams: usize, rate: Option<f64>) -> Option<String> {
    if left.teams == 0 {
        return None;
    }
    let ScanBacklog { teams: waiting, requests } = left;
    let text = format!("people and computers: {waiting} of {teams} teams wait to be read, about {requests} requests");
    Some(match rate {
        Some(rate) => format!("{text}: {} at {rate} a second, after the events are read", span(left.seconds(rate))),
        None => text,
    })
}

/// In the largest useful unit: `75d`, `13h`, `4m`, `12s`.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_use_the_largest_useful_unit() {
        let read: Vec<String> = [5, 119, 120, 7_199, 7_200, 172_799, 172_800, 7_776_000].map(span).to_vec();
        assert_eq!(read, ["5s", "119s", "2m", "119m", "2h", "47h", "2d", "90d"]);
    }

    #[test]
    fn status_predicts_the_end_of_the_inventory_scans() {
        let left = ScanBacklog { teams: 412, requests: 3_000 };
        assert_eq!(left_text(ScanBacklog::default(), 1_000, Some(2.5)), None);
        assert_eq!(
            left_text(left, 1_000, Some(2.5)).unwrap(),
            "people and computers: 412 of 1000 teams wait to be read, about 3000 requests: 20m at 2.5 a second, after the \
             events are read"
        );
        assert!(left_text(left, 1_000, None).unwrap().ends_with("about 3000 requests"));
        assert_eq!(scan_backlog_json(left, Some(2.5))["seconds"], 1_200);
    }
}

//! `annals sync`: reads everything that is due once, then stops.

use std::collections::BTreeSet;
use std::str::FromStr;

use clap::Args;

use crate::api::ApiError;
use crate::archive::Archive;
use crate::config::When;
use crate::error::{Error, Exit};
use crate::model::{Instant, Stream, TeamId};
use crate::pipeline::{BACKFILL_DAYS_DEFAULT, FleetRound, RoundError, ScanMode, Settings, TeamRound};
use crate::report::printable;

use super::{Global, bars, output, query, reading, teams};

/// Without the plan's span, no gap of `plan_span` is ever found.
pub const SPAN_UNKNOWN: &str = "the service does not show the plan's span, so Annals cannot notice connections that leave it unread: \
     set `api.plan_span`";

/// Read everything that the service shows and the archive lacks, then stop
#[derive(Debug, Clone, Args)]
pub struct SyncArgs {
    /// Only this team, by id or name; repeatable [default: all teams that the token sees]
    #[arg(long, value_name = "TEAM")]
    pub team: Vec<String>,
    /// Only this stream (activity, connections, billing), or people and computers (inventory), even if they are not due;
    /// repeatable
    #[arg(long)]
    stream: Vec<Subject>,
    /// Start of the backfill; an earlier date later extends the archive: 2026-11-20, RFC 3339, or -30d
    /// [default: the plan's span if the team shows it, else 30 days]
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    since: Option<When>,
    /// Read only windows that end at or before this date
    #[arg(long, value_name = "DATE", allow_hyphen_values = true)]
    until: Option<When>,
    /// Read settled windows again, even if their next re-scan is not due
    #[arg(long)]
    rescan: bool,
    /// Leave out each user's sign-in methods and tokens (one request for each user, once a day)
    #[arg(long)]
    no_user_info: bool,
}

/// A value of `--stream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Stream(Stream),
    Inventory,
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "inventory" {
            return Ok(Subject::Inventory);
        }
        let refused = || format!("unknown stream {text:?}: expected activity, connections, billing or inventory");
        text.parse().map(Subject::Stream).map_err(|_| refused())
    }
}

impl SyncArgs {
    /// The settings with this verb's flags applied.
    ///
    /// # Errors
    /// When the dates contradict each other, or `--since` is in the future.
    pub fn apply(&self, mut settings: Settings, now: Instant) -> Result<Settings, Error> {
        settings.since = self.since.map(|when| when.resolve(now));
        settings.until = self.until.map(|when| when.resolve(now));
        if let (Some(since), Some(until)) = (settings.since, settings.until)
            && since >= until
        {
            return Err(Error::Usage(format!("--since {since} is not before --until {until}")));
        }
        if let Some(since) = settings.since.filter(|since| *since > now) {
            return Err(Error::Usage(format!("--since {since} is in the future: the sync would read nothing")));
        }
        if !self.stream.is_empty() {
            let streams = self.stream.iter().filter_map(|subject| match subject {
                Subject::Stream(stream) => Some(*stream),
                Subject::Inventory => None,
            });
            settings.streams = streams.collect();
        }
        self.apply_to_inventory(&mut settings);
        settings.rescan_now = self.rescan;
        Ok(settings)
    }

    /// An inventory scan is always about now, so a sync with `--until` leaves it out. If `--stream` names it, it runs even if
    /// the configuration turns it off.
    fn apply_to_inventory(&self, settings: &mut Settings) {
        let is_named = self.stream.contains(&Subject::Inventory);
        if is_named {
            settings.inventory.scan = ScanMode::Now;
        } else if !self.stream.is_empty() || settings.until.is_some() {
            settings.inventory.scan = ScanMode::Never;
        }
        settings.inventory.user_info &= !self.no_user_info;
    }
}

pub async fn run(global: &Global, args: &SyncArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let clock = reading::clock();
    let mut settings = args.apply(reading::settings(&config), clock.now())?;
    let source = reading::configured_source(&config, &clock)?;
    if !args.team.is_empty() {
        let asked = teams::at_service(&*source, query::existing(&config)?.as_ref(), &args.team).await?;
        settings.teams = teams::own(asked, settings.shard)?;
    }
    let (place, signer) = (query::archive_place(&config)?, reading::signer(&config)?);
    let archive = reading::archive(&place, config.grace_at(&place.data), &clock)?.with_signer(signer);
    let (round, unseen) = {
        let edges = reading::edges(source, archive, clock, settings.clone(), bars::for_stderr());
        let round = edges.read_once().await?;
        let unseen = unseen(&round, &settings, &edges.archive);
        (round, unseen)
    };
    print_round(&round, &settings);
    let is_unknown = |round: &TeamRound| round.is_done() && round.plan_span.is_none();
    let without_span = round.teams.iter().filter(|(_, round)| round.as_ref().is_ok_and(is_unknown)).count();
    if without_span > 0 && settings.reads(Stream::Connections) {
        output::say(&format!("{}: {SPAN_UNKNOWN}", output::counted(without_span as u64, "team")));
    }
    let unseen = unseen?;
    for team in &unseen {
        output::say(&format!(
            "team {team}: the archive holds it, but the token does not see it, so Annals did not read it: give the token access, or name the teams to read in `api.teams`"
        ));
    }
    output::say(&format!("the archive is at {place}"));
    let done = round.teams.iter().filter_map(|(team, round)| Some((team, round.as_ref().ok()?)));
    Ok(done.fold(exit(&round, unseen.is_empty()), |exit, (team, done)| {
        exit.and(teams::exit_of_unsigned(&teams::label(team, done.name.as_deref()), done.unsigned_lines))
    }))
}

/// The archived teams of this shard that the service does not list. If teams are named, no other team is missing.
fn unseen(round: &FleetRound, settings: &Settings, archive: &Archive) -> Result<Vec<String>, Error> {
    if !settings.teams.is_empty() {
        return Ok(Vec::new());
    }
    let read: BTreeSet<&TeamId> = round.teams.iter().map(|(team, _)| team).collect();
    let own = settings.own(archive.teams()?).into_iter();
    Ok(own.filter(|team| !read.contains(team)).map(|team| teams::archived_label(archive, &team)).collect())
}

/// A team that was not read outranks a gap, and a gap outranks success. An archived team that the token does not see counts like
/// a gap: no request failed, but Annals misses the team's events.
fn exit(round: &FleetRound, sees_all: bool) -> Exit {
    match (round.is_done(), round.committed().gaps > 0 || round.has_deferred() || !sees_all) {
        (false, _) => Exit::Fault,
        (true, false) => Exit::Done,
        (true, true) => Exit::Weaker,
    }
}

/// Prints for each team what was read and what failed.
pub fn print_round(round: &FleetRound, settings: &Settings) {
    for (team, result) in &round.teams {
        match result {
            Ok(done) => print_team(&teams::label(team, done.name.as_deref()), done, settings),
            Err(error) => {
                let team = teams::label(team, None);
                output::say(&format!("team {team}: Annals read nothing: {}", advice(error)));
            }
        }
    }
    if round.teams.is_empty() {
        output::say(&match settings.shard {
            shard if shard.is_whole() => "the token sees no team: nothing to read".to_owned(),
            shard => format!("no team belongs to shard {shard}: nothing to read"),
        });
    }
}

fn print_team(team: &str, round: &TeamRound, settings: &Settings) {
    let committed = &round.committed;
    let events = output::counted(committed.rows, "new event");
    let mut line = format!("team {team}: {events} in {}", output::counted(committed.commits, "commit"));
    for (count, what) in [
        (committed.late, "late"),
        (committed.rejects, "quarantined: see `annals quarantine list`"),
        (committed.gaps, "gaps recorded: see `annals sql \"from findings where kind = 'gap'\"`"),
    ] {
        if count > 0 {
            line.push_str(&format!("; {count} {what}"));
        }
    }
    if let Some(first) = round.first.filter(|_| committed.commits > 0 || round.failures.is_empty()) {
        let why = match (settings.since, round.plan_span) {
            (Some(_), _) => "the date of --since".to_owned(),
            (None, Some(span)) => format!("the plan's span of {} days", span.as_secs() / 86_400),
            (None, None) => format!("{BACKFILL_DAYS_DEFAULT} days, because the team does not show its plan's span"),
        };
        line.push_str(&format!("; the archive begins on {} ({why})", first.day()));
    }
    if round.scan.changes > 0 {
        line.push_str(&format!("; {} changes of people and computers", round.scan.changes));
    }
    output::say(&line);
    for stream in Stream::ALL {
        let ranges: Vec<_> =
            round.deferred.open.iter().filter(|(of, _)| *of == stream).map(|(_, range)| range).collect();
        if let Some(first) = ranges.iter().min_by_key(|range| range.start) {
            let count = ranges.len();
            output::say(&format!(
                "team {team}: {stream} changed at each read in {count} ranges, the first {first}: they remain open, and the next sync reads them again"
            ));
        }
    }
    for stream in &round.deferred.unread {
        output::say(&format!(
            "team {team}: {stream}: Annals did not read an open window completely: its list changed at each read, was empty although the archive holds events of this window, or the service listed no computer; the next sync reads it again"
        ));
    }
    for error in &round.scan.failures {
        output::say(&format!("team {team}: Annals read only a part of the people and computers: {}", advice(error)));
    }
    for (stream, error) in &round.failures {
        let what = stream.map_or_else(|| "not finished".to_owned(), |stream| format!("{stream} was not finished"));
        output::say(&format!("team {team}: {what}: {}", advice(error)));
    }
}

/// The error, with the next step if the message does not name it.
fn advice(error: &RoundError) -> String {
    let next = match error {
        RoundError::Api(error) if error.is_transient() => {
            "; the events already read are kept, run sync again to continue"
        }
        RoundError::Archive(error) if error.is_fenced() => {
            "; another process writes this team: run sync again to continue"
        }
        RoundError::Archive(error) if error.is_transient() => {
            "; remove the cause and run sync again, the archive is consistent"
        }
        RoundError::Api(ApiError::NotFound { what, .. }) if is_of_team(what) => {
            "; `api.teams` takes ids of teams that the token sees: `annals init` lists them"
        }
        RoundError::Api(_) | RoundError::Archive(_) => "",
    };
    // Ids and messages are untrusted text.
    printable(&format!("{error}{next}"))
}

/// Whether a request asks about a team itself, `GET /v1/team/<id>`.
fn is_of_team(what: &str) -> bool {
    what.split_once("/team/").is_some_and(|(_, id)| !id.contains('/'))
}

//! `annals plan`: estimates what a sync would read, its cost, and which events would be lost first.

mod bucket_requests;
mod planned_scan;

use std::collections::BTreeMap;
use std::time::Duration;

use arrow::array::RecordBatch;
use clap::Args;

use crate::api::{EventSource, Served, TeamView, scans_per_second};
use crate::archive::{StreamRecord, TeamReader, TeamState};
use crate::collect::sample;
use crate::error::{Error, Exit};
use crate::model::{Instant, Range, Stream, TeamId};
use crate::pipeline::{Density, Estimate, Settings, StreamPlan, StreamWindows, estimate, estimate_of_team, plan};
use crate::report::{Format, TeamNames};

pub use bucket_requests::BucketRequests;
use planned_scan::{OtherRequests, count_users, planned_scan};

use super::output::{Columns, OutputArgs};
use super::sync::SyncArgs;
use super::{Global, output, query, reading, status, teams};

/// Asks the service for the events and users of this many teams at most; estimates the others from these.
const SAMPLED_TEAMS_MAX: usize = 8;

/// Estimate the requests and the time of a sync, and which events would be lost first; writes nothing
#[derive(Debug, Clone, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    sync: SyncArgs,
    #[command(flatten)]
    output: OutputArgs,
}

struct Row {
    team: TeamId,
    stream: Stream,
    from: Option<Instant>,
    estimate: Estimate,
    left: Option<Duration>,
}

pub async fn run(global: &Global, args: &PlanArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let clock = reading::clock();
    let settings = args.sync.apply(reading::settings(&config), clock.now())?;
    let source = reading::configured_source(&config, &clock)?;
    let archive = query::existing(&config)?;
    let teams = match (args.sync.team.as_slice(), settings.teams.as_slice()) {
        ([], []) => settings.own(source.teams().await?.body),
        ([], configured) => settings.own(configured.to_vec()),
        (asked, _) => teams::own(teams::at_service(&*source, archive.as_ref(), asked).await?, settings.shard)?,
    };
    let mut names = TeamNames::default();
    let lists_teams = args.sync.team.is_empty() && settings.teams.is_empty();
    let samples = Samples::default();
    let mut planner = Planner { source: &*source, settings: &settings, samples, bucket: BucketRequests::default() };
    let (mut rows, mut beside) = (Vec::new(), OtherRequests { rest: u64::from(lists_teams), people: 0 });
    for team in teams {
        let reader = match &archive {
            Some(archive) if archive.teams()?.contains(&team) => Some(archive.read(&team)?),
            _ => None,
        };
        let view = source.team(&team).await?;
        names.put(team.clone(), view.body.name.as_deref());
        let (of_team, beside_of_team) = planner.team(reader.as_ref(), &view, clock.now(), team).await?;
        rows.extend(of_team);
        beside.people += beside_of_team.people;
        beside.rest += beside_of_team.rest;
    }
    rows.sort_by_key(|row| row.left.unwrap_or(Duration::MAX));
    let is_overlapped = planner.samples.teams > settings.teams_at_once;
    let mut message = summary(&rows, &names, beside, config.requests_per_second, is_overlapped);
    if config.is_in_bucket() {
        message.push_str(&bucket_cost(planner.bucket));
    }
    if args.output.format() == Format::Table {
        let text = format!("{}\n{message}\n", table(&rows, &names));
        output::to(args.output.output.as_deref(), |out| out.write_all(text.as_bytes()).map_err(Error::output))?;
    } else {
        args.output.batch(&batch(&rows))?;
        output::say(&message);
    }
    Ok(Exit::Done)
}

/// The service's answers about teams that have no ledger yet.
#[derive(Default)]
struct Samples {
    teams: usize,
    densities: BTreeMap<Stream, Vec<Density>>,
    users: Vec<u64>,
}

struct Planner<'a> {
    source: &'a dyn EventSource,
    settings: &'a Settings,
    samples: Samples,
    /// The requests of a day to the bucket, for the teams so far.
    bucket: BucketRequests,
}

impl Planner<'_> {
    /// Estimates a team's streams and its other requests.
    async fn team(
        &mut self,
        reader: Option<&TeamReader>,
        view: &Served<TeamView>,
        fallback: Instant,
        team: TeamId,
    ) -> Result<(Vec<Row>, OtherRequests), Error> {
        let (settings, state) = (self.settings, reader.map(TeamReader::state));
        let now = view.at.unwrap_or(fallback);
        let span = view.body.plan_span.or(settings.plan_span);
        let first = settings.backfill_start(span, now);
        self.samples.teams += 1;
        let (mut rows, mut events_a_day) = (Vec::new(), 0);
        for stream in Stream::ALL.into_iter().filter(|stream| settings.reads(*stream)) {
            let mut windows = match state {
                Some(state) => StreamWindows::of(state, stream, settings.grid),
                None => StreamWindows::new(StreamRecord::default(), [], settings.grid),
            };
            let estimate = if stream == Stream::Billing {
                Estimate { requests: 1, is_density_known: true, ..Estimate::default() }
            } else {
                let plan = plan(&mut windows, first, settings, now);
                let plan = match state {
                    Some(state) => plan.without_expired(state, stream),
                    None => plan,
                };
                let density = self.density(&team, stream, &windows, &plan, now).await?;
                let last_day = Range::new(now.minus(Duration::from_secs(86_400)), now);
                events_a_day += density.as_ref().map_or(0, |density| density.events_in(last_day));
                estimate(&plan, &windows, density.as_ref(), settings, now)
            };
            let read_to = windows.record.read_points.last().map(|point| point.read_to);
            // A first backfill begins with its oldest events, which the service drops first.
            let left = span.filter(|_| stream == Stream::Connections);
            let left = left.map(|span| read_to.unwrap_or(first.max(now.minus(span))).plus(span).since(now));
            let from = (stream != Stream::Billing).then(|| read_to.unwrap_or(first));
            rows.push(Row { team: team.clone(), stream, from, estimate, left });
        }
        self.bucket = self.bucket.plus(BucketRequests::of_team(events_a_day, settings.commit_every));
        let users = self.users(&team, state).await?;
        let mut beside = planned_scan(state, users, settings, now);
        beside.rest += estimate_of_team(state, settings);
        Ok((rows, beside))
    }

    /// The density of a stream's events: from the archive, from a sample of the service, or from another team.
    async fn density(
        &mut self,
        team: &TeamId,
        stream: Stream,
        windows: &StreamWindows,
        plan: &StreamPlan,
        now: Instant,
    ) -> Result<Option<Density>, Error> {
        if let Some(density) = Density::of_windows(windows) {
            return Ok(Some(density));
        }
        if plan.begins >= now {
            return Ok(None);
        }
        let samples = self.samples.densities.entry(stream).or_default();
        if samples.len() >= SAMPLED_TEAMS_MAX {
            return Ok(Some(samples[self.samples.teams % samples.len()].clone()));
        }
        let sampled = sample(self.source, team, stream, Range::new(plan.begins, now)).await?.map(Density::of_points);
        samples.extend(sampled.clone());
        Ok(sampled)
    }

    /// The number of users that the first inventory scan will find.
    async fn users(&mut self, team: &TeamId, state: Option<&TeamState>) -> Result<Option<u64>, Error> {
        let samples = &mut self.samples.users;
        if samples.len() >= SAMPLED_TEAMS_MAX {
            return Ok(Some(samples[self.samples.teams % samples.len()]));
        }
        let counted = count_users(self.source, team, state, &self.settings.inventory).await?;
        samples.extend(counted);
        Ok(counted)
    }
}

fn batch(rows: &[Row]) -> RecordBatch {
    Columns::of(rows)
        .text("team_id", |row| row.team.as_str())
        .text("stream", |row| row.stream.as_str())
        .time_or_null("unread_since", |row| row.from)
        .number("seconds_to_read", |row| row.estimate.seconds)
        .number("rescans", |row| row.estimate.rescans)
        .number("requests", |row| row.estimate.requests)
        .number_or_null("seconds_to_loss", |row| row.left.map(|left| left.as_secs()))
        .batch()
}

fn table(rows: &[Row], names: &TeamNames) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(["team", "stream", "unread since", "to read", "re-scans", "requests, about", "time to loss"]);
    for row in rows {
        table.add_row([
            names.label(row.team.as_str()),
            row.stream.to_string(),
            row.from.map_or_else(|| "-".to_owned(), |at| at.floor_second().to_string()),
            status::span(row.estimate.seconds),
            row.estimate.rescans.to_string(),
            row.estimate.requests.to_string(),
            row.left.map_or_else(|| "-".to_owned(), |left| status::span(left.as_secs())),
        ]);
    }
    table
}

fn bucket_cost(requests: BucketRequests) -> String {
    let BucketRequests { puts, gets, lists } = requests;
    format!("\nthe bucket then takes about {puts} PUT, {gets} GET and {lists} LIST a day")
}

/// The whole cost, and what would be lost first. `is_overlapped`: other teams are read while people are read.
fn summary(
    rows: &[Row],
    names: &TeamNames,
    beside: OtherRequests,
    requests_per_second: Option<f64>,
    is_overlapped: bool,
) -> String {
    let people = beside.people;
    let others = rows.iter().map(|row| row.estimate.requests).sum::<u64>() + beside.rest;
    let mut text = format!("about {} requests", others + people);
    if let Some(rate) = requests_per_second {
        let at = |requests: u64, rate: f64| Duration::from_secs(requests).div_f64(rate);
        let scans = at(people, scans_per_second(rate));
        let whole = if is_overlapped { at(others + people, rate).max(scans) } else { at(others, rate) + scans };
        text.push_str(&format!(", {} at {rate} a second", status::span(whole.as_secs())));
    }
    if people > 0 {
        text.push_str(&format!("; {people} of them read people"));
    }
    if rows.iter().any(|row| !row.estimate.is_density_known) {
        text.push_str("; the service does not say how many events exist, so the sync can need more");
    }
    if let Some(row) = rows.iter().find(|row| row.left.is_some()) {
        let team = names.label(row.team.as_str());
        let left = row.left.map_or_else(String::new, |left| status::span(left.as_secs()));
        text.push_str(&format!("\nwithout a sync, the service first drops {} of {team}, in {left}", row.stream));
    }
    text
}

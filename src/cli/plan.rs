//! `annals plan`: what a sync would fetch, what it would cost, and what would be lost first.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use clap::Args;

use crate::api::{Served, TeamView};
use crate::archive::{Archive, StreamRecord, TeamReader};
use crate::error::{Error, Exit};
use crate::model::{Instant, Stream, TeamId};
use crate::pipeline::{BACKFILL_DAYS_DEFAULT, Estimate, Settings, Windows, estimate, looks_planned, plan, windows_of};
use crate::report::{Format, TeamNames};

use super::output::OutputArgs;
use super::sync::SyncArgs;
use super::{Global, look, output, reading, status, teams};

/// What a sync would fetch, how many requests, how long, and what would be lost first; writes nothing
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
    let archive = look::existing(&config)?;
    let teams = match (args.sync.team.as_slice(), settings.teams.as_slice()) {
        ([], []) => source.teams().await?.body,
        ([], configured) => configured.to_vec(),
        (asked, _) => teams::at_service(&*source, archive.as_ref(), asked).await?,
    };
    let mut names = TeamNames::default();
    let (mut rows, mut looks) = (Vec::new(), 0);
    for team in teams {
        let view = source.team(&team).await?;
        names.put(team.clone(), view.body.name.as_deref());
        let (of_team, looks_of_team) = team_rows(&view, archive.as_ref(), &settings, clock.now(), team)?;
        rows.extend(of_team);
        looks += looks_of_team;
    }
    rows.sort_by_key(|row| row.left.unwrap_or(Duration::MAX));
    let said = summary(&rows, &names, looks, config.requests_per_second);
    if args.output.format() == Format::Table {
        let text = format!("{}\n{said}\n", table(&rows, &names));
        output::to(args.output.output.as_deref(), |out| out.write_all(text.as_bytes()).map_err(Error::output))?;
    } else {
        args.output.batch(&batch(&rows))?;
        output::say(&said);
    }
    Ok(Exit::Done)
}

/// What a team's streams would take, and the requests of the looks at its people and computers.
fn team_rows(
    view: &Served<TeamView>,
    archive: Option<&Archive>,
    settings: &Settings,
    fallback: Instant,
    team: TeamId,
) -> Result<(Vec<Row>, u64), Error> {
    let now = view.at.unwrap_or(fallback);
    let span = view.body.plan_span;
    let default = now.minus(span.unwrap_or(Duration::from_secs(BACKFILL_DAYS_DEFAULT * 86_400)));
    let first = settings.since.unwrap_or(default).max(Instant::EARLIEST);
    let held = match archive {
        Some(archive) if archive.teams()?.contains(&team) => Some(archive.read(&team)?),
        _ => None,
    };
    let mut rows = Vec::new();
    for stream in Stream::ALL.into_iter().filter(|stream| settings.reads(*stream)) {
        let (record, windows) = match &held {
            Some(reader) => windows_of(reader.state(), stream),
            None => (StreamRecord::default(), Windows::new()),
        };
        let estimate = if stream == Stream::Billing {
            Estimate { requests: 1, is_informed: true, ..Estimate::default() }
        } else {
            estimate(&plan(&record, &windows, first, settings, now), &windows)
        };
        let read_to = record.read_points.last().map(|point| point.read_to);
        // A first backfill stands at its beginning: what it reads first is what the plan's span drops first.
        let left = span.filter(|_| stream == Stream::Connections);
        let left = left.map(|span| read_to.unwrap_or(first.max(now.minus(span))).plus(span).since(now));
        let from = (stream != Stream::Billing).then(|| read_to.unwrap_or(first));
        rows.push(Row { team: team.clone(), stream, from, estimate, left });
    }
    let looks = looks_planned(held.as_ref().map(TeamReader::state), &settings.inventory, now);
    Ok((rows, looks))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let numbers = |of: fn(&Row) -> Option<u64>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<UInt64Array>()) };
    let since = rows.iter().map(|row| row.from.map(Instant::micros));
    let columns: [(&str, ArrayRef); 7] = [
        ("team_id", Arc::new(rows.iter().map(|row| Some(row.team.as_str())).collect::<StringArray>())),
        ("stream", Arc::new(rows.iter().map(|row| Some(row.stream.as_str())).collect::<StringArray>())),
        ("unread_since", Arc::new(since.collect::<TimestampMicrosecondArray>())),
        ("seconds_to_read", numbers(|row| Some(row.estimate.seconds))),
        ("rescans", numbers(|row| Some(row.estimate.rescans))),
        ("requests", numbers(|row| Some(row.estimate.requests))),
        ("seconds_to_loss", numbers(|row| row.left.map(|left| left.as_secs()))),
    ];
    let columns = columns.map(|(name, values)| (name, values, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("BUG: columns of one length")
}

fn table(rows: &[Row], names: &TeamNames) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header(["team", "stream", "unread since", "to read", "re-scans", "requests, about", "left to loss"]);
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

/// What it takes in all, and what would be lost first.
fn summary(rows: &[Row], names: &TeamNames, looks: u64, requests_per_second: Option<f64>) -> String {
    let requests: u64 = rows.iter().map(|row| row.estimate.requests).sum::<u64>() + looks;
    let mut text = format!("about {requests} requests");
    if let Some(rate) = requests_per_second {
        let seconds = Duration::from_secs(requests).div_f64(rate).as_secs();
        text.push_str(&format!(", {} at {rate} a second", status::span(seconds)));
    }
    if looks > 0 {
        text.push_str(&format!("; {looks} of them look at people and computers, and one more at each new user"));
    }
    if rows.iter().any(|row| !row.estimate.is_informed) {
        text.push_str("; the density of events is not known before the first reading, so it may be more");
    }
    if let Some(row) = rows.iter().find(|row| row.left.is_some()) {
        let team = names.label(row.team.as_str());
        let left = row.left.map_or_else(String::new, |left| status::span(left.as_secs()));
        text.push_str(&format!("\nlost first, if nothing is read: {team} {}, in {left}", row.stream));
    }
    text
}

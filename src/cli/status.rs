//! `annals status`: where reading stands, from the archive alone.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use clap::Args;
use serde_json::json;

use crate::error::{Error, Exit};
use crate::model::Instant;
use crate::pipeline::{InventoryStatus, StreamStatus, TeamStatus, status};
use crate::report::Format;

use super::output::OutputArgs;
use super::{Global, look, output, reading};

/// Per team and stream: settled edge, lag, open windows, gaps, time left to loss
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// One JSON object, with more than the rows say
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(global: &Global, args: &StatusArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let archive = look::open(&config)?;
    let now = reading::clock().now();
    let mut teams = Vec::new();
    for team in archive.teams()? {
        teams.push(status(archive.read(&team)?.state(), now));
    }
    let output = &args.output;
    if args.json {
        let root = look::root(&config)?;
        let line =
            json!({"archive": root.display().to_string(), "archive_id": archive.id(), "at": now, "teams": teams});
        output::to(output.output.as_deref(), |out| writeln!(out, "{line:#}").map_err(Error::output))?;
    } else if output.format() == Format::Table {
        output::to(output.output.as_deref(), |out| print(out, &teams, config.alerts.time_left))?;
    } else {
        output.batch(&rows(&teams))?;
        let mut notes = Vec::new();
        tell(&mut notes, &teams, config.alerts.time_left)?;
        output::say(&String::from_utf8_lossy(&notes));
    }
    Ok(Exit::Done)
}

/// A row a team and stream.
fn rows(teams: &[TeamStatus]) -> RecordBatch {
    let all: Vec<(&str, &StreamStatus)> =
        teams.iter().flat_map(|team| team.streams.iter().map(|stream| (team.team.as_str(), stream))).collect();
    let streams = || all.iter().map(|(_, stream)| *stream);
    let moments = |of: fn(&StreamStatus) -> Option<Instant>| -> ArrayRef {
        Arc::new(streams().map(|stream| of(stream).map(Instant::micros)).collect::<TimestampMicrosecondArray>())
    };
    let numbers =
        |of: fn(&StreamStatus) -> Option<u64>| -> ArrayRef { Arc::new(streams().map(of).collect::<UInt64Array>()) };
    let columns: [(&str, ArrayRef); 11] = [
        ("team_id", Arc::new(all.iter().map(|(team, _)| Some(*team)).collect::<StringArray>())),
        ("stream", Arc::new(streams().map(|stream| Some(stream.stream.as_str())).collect::<StringArray>())),
        ("begins", moments(|stream| stream.begins)),
        ("settled_to", moments(|stream| stream.settled_to)),
        ("read_to", moments(|stream| stream.read_to)),
        ("lag_seconds", numbers(|stream| stream.lag_seconds)),
        ("open_windows", numbers(|stream| Some(stream.open_windows))),
        ("events", numbers(|stream| Some(stream.events))),
        ("late", numbers(|stream| Some(stream.late))),
        ("gaps", numbers(|stream| Some(stream.gaps))),
        ("seconds_to_loss", numbers(|stream| stream.seconds_to_loss)),
    ];
    let columns = columns.map(|(name, values)| (name, values, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("BUG: columns of one length")
}

fn print(out: &mut dyn Write, teams: &[TeamStatus], threshold: Duration) -> Result<(), Error> {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "team",
        "stream",
        "from",
        "settled to",
        "read to",
        "lag",
        "open",
        "events",
        "late",
        "gaps",
        "left to loss",
    ]);
    for team in teams {
        let name = printable(&team.team);
        for stream in &team.streams {
            let moment = |at: Option<Instant>| at.map_or_else(|| "-".to_owned(), |at| at.floor_second().to_string());
            table.add_row([
                name.clone(),
                stream.stream.to_string(),
                moment(stream.begins),
                moment(stream.settled_to),
                moment(stream.read_to),
                stream.lag_seconds.map_or_else(|| "-".to_owned(), span),
                stream.open_windows.to_string(),
                stream.events.to_string(),
                stream.late.to_string(),
                stream.gaps.to_string(),
                stream.seconds_to_loss.map_or_else(|| "-".to_owned(), span),
            ]);
        }
    }
    writeln!(out, "{table}").map_err(Error::output)?;
    tell(out, teams, threshold)
}

/// What is worth knowing beside the rows.
fn tell(out: &mut dyn Write, teams: &[TeamStatus], threshold: Duration) -> Result<(), Error> {
    for team in teams {
        for stream in &team.streams {
            if let Some(left) = stream.short_of_time(threshold, 0) {
                let left = span(left.as_secs());
                let line = format!("{} {}: only {left} left until unread events may be lost", team.team, stream.stream);
                writeln!(out, "warning: {line}").map_err(Error::output)?;
            }
            for second in &stream.unstable {
                let line = format!("{} {}: {second} does not hold still and stays open", team.team, stream.stream);
                writeln!(out, "{line}").map_err(Error::output)?;
            }
            if stream.deprecated_history {
                let line = format!("{}: connections are read from the deprecated per-computer history", team.team);
                writeln!(out, "{line}").map_err(Error::output)?;
            }
        }
        for line in about_inventory(&team.inventory) {
            writeln!(out, "{}: {line}", printable(&team.team)).map_err(Error::output)?;
        }
        if team.quarantined > 0 {
            let line = format!("{}: {} events in quarantine: `annals quarantine list`", team.team, team.quarantined);
            writeln!(out, "{line}").map_err(Error::output)?;
        }
    }
    Ok(())
}

fn about_inventory(inventory: &InventoryStatus) -> Vec<String> {
    let Some(at) = inventory.looked_at else {
        return vec!["people and computers were not looked at yet".to_owned()];
    };
    let InventoryStatus { users, computers, groups, .. } = inventory;
    let at = at.floor_second();
    let mut lines =
        vec![format!("people and computers as of {at}: {users} users, {computers} computers, {groups} groups")];
    if !inventory.hidden.is_empty() {
        let hidden: Vec<&str> = inventory.hidden.iter().map(|part| part.as_str()).collect();
        lines.push(format!("the token may not see {}: nothing is known of them since", hidden.join(", ")));
    }
    if inventory.unknown_fields > 0 {
        let count = inventory.unknown_fields;
        lines.push(format!("{count} undocumented fields are not kept: findings of kind unknown_field name them"));
    }
    lines
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// The largest unit that says enough: `75d`, `13h`, `4m`, `12s`.
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
    use super::span;

    #[test]
    fn spans_read_well() {
        let read: Vec<String> = [5, 119, 120, 7_199, 7_200, 172_799, 172_800, 7_776_000].map(span).to_vec();
        assert_eq!(read, ["5s", "119s", "2m", "119m", "2h", "47h", "2d", "90d"]);
    }
}

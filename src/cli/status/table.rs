//! The status table: a row for each stream of a team, one for its people and computers, and one for its quarantine if it holds
//! events. A team of another shard has one row, which names the shard.

use std::time::Duration;

use arrow::array::RecordBatch;

use crate::model::{Instant, Shard, Stream};
use crate::pipeline::{InventoryStatus, StreamStatus, TeamStatus};
use crate::report::{TeamNames, printable};

use super::super::output::{Columns, counted};
use super::super::sync::SPAN_UNKNOWN;
use super::span;

/// One row. A column that does not apply is `None`.
#[derive(Debug, Default)]
struct Row<'a> {
    team: &'a str,
    stream: &'static str,
    begins: Option<Instant>,
    settled_to: Option<Instant>,
    read_to: Option<Instant>,
    lag_seconds: Option<u64>,
    open_windows: Option<u64>,
    events: Option<u64>,
    late: Option<u64>,
    gaps: Option<u64>,
    seconds_to_loss: Option<u64>,
    note: String,
}

/// A team that another shard reads.
#[derive(Debug)]
pub struct OtherShardTeam {
    team: String,
    owner: Shard,
}

impl OtherShardTeam {
    /// The `teams` of other shards than `shard`, sorted by shard and id.
    pub fn all(teams: &[TeamStatus], shard: Shard) -> Vec<Self> {
        let of = |team: &TeamStatus| {
            let owner = shard.other_owner(&team.team.as_str().into())?;
            Some(Self { team: team.team.clone(), owner })
        };
        let mut others: Vec<Self> = teams.iter().filter_map(of).collect();
        others.sort_by(|a, b| (a.owner, &a.team).cmp(&(b.owner, &b.team)));
        others
    }

    fn row(&self) -> Row<'_> {
        let note = format!("shard {} reads this team", self.owner);
        Row { team: &self.team, note, ..Row::default() }
    }
}

/// A problem that a person should look into, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Problem {
    /// Seconds until the service drops unread events.
    ShortOfTime(u64),
    Unstable,
    Gap,
    Quarantine,
}

/// Sorts the teams with a problem first, the most urgent at the top; the others by id.
pub fn problems_first(teams: &mut [TeamStatus], threshold: Duration) {
    teams.sort_by_cached_key(|team| {
        let problem = problem(team, threshold);
        (problem.is_none(), problem, team.team.clone())
    });
}

fn problem(team: &TeamStatus, threshold: Duration) -> Option<Problem> {
    let of_stream = |stream: &StreamStatus| {
        let short = stream.short_of_time(threshold, 0).map(|left| Problem::ShortOfTime(left.as_secs()));
        let unstable = (!stream.unstable.is_empty()).then_some(Problem::Unstable);
        short.or(unstable).or((stream.gaps > 0).then_some(Problem::Gap))
    };
    let quarantine = (team.quarantined > 0).then_some(Problem::Quarantine);
    team.streams.iter().filter_map(of_stream).min().or(quarantine)
}

/// The table for people: all teams with a problem, at most `healthy` others, and at most `healthy` teams of other shards.
pub fn text(
    teams: &[TeamStatus],
    others: &[OtherShardTeam],
    names: &TeamNames,
    threshold: Duration,
    healthy: usize,
    now: Instant,
) -> String {
    let troubled = teams.iter().filter(|team| problem(team, threshold).is_some()).count();
    let shown = troubled.saturating_add(healthy).min(teams.len());
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
        "time to loss",
        "note",
    ]);
    let others_shown = healthy.min(others.len());
    let own = teams[..shown].iter().flat_map(|team| rows_of(team, threshold, now));
    for row in own.chain(others[..others_shown].iter().map(OtherShardTeam::row)) {
        let moment = |at: Option<Instant>| at.map_or_else(|| "-".to_owned(), |at| at.floor_second().to_string());
        let long = |seconds: Option<u64>| seconds.map_or_else(|| "-".to_owned(), span);
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        table.add_row([
            names.label(row.team),
            if row.stream.is_empty() { "-" } else { row.stream }.to_owned(),
            moment(row.begins),
            moment(row.settled_to),
            moment(row.read_to),
            long(row.lag_seconds),
            number(row.open_windows),
            number(row.events),
            number(row.late),
            number(row.gaps),
            long(row.seconds_to_loss),
            printable(&row.note),
        ]);
    }
    let more = [
        more_text(teams.len() - shown, "without a problem"),
        more_text(others.len() - others_shown, "of other shards"),
    ];
    format!("{table}\n{}", more.concat())
}

/// The line that counts the teams that the table leaves out.
fn more_text(count: usize, which: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!("and 1 more team {which}: `annals status --all` shows it\n"),
        more => format!("and {more} more teams {which}: `annals status --all` shows them\n"),
    }
}

/// The table for programs, with every team.
pub fn rows(teams: &[TeamStatus], others: &[OtherShardTeam], threshold: Duration, now: Instant) -> RecordBatch {
    let own = teams.iter().flat_map(|team| rows_of(team, threshold, now));
    let all: Vec<Row> = own.chain(others.iter().map(OtherShardTeam::row)).collect();
    Columns::of(&all)
        .text("team_id", |row| row.team)
        .text_or_null("stream", |row| Some(row.stream).filter(|stream| !stream.is_empty()))
        .time_or_null("begins", |row| row.begins)
        .time_or_null("settled_to", |row| row.settled_to)
        .time_or_null("read_to", |row| row.read_to)
        .number_or_null("lag_seconds", |row| row.lag_seconds)
        .number_or_null("open_windows", |row| row.open_windows)
        .number_or_null("events", |row| row.events)
        .number_or_null("late", |row| row.late)
        .number_or_null("gaps", |row| row.gaps)
        .number_or_null("seconds_to_loss", |row| row.seconds_to_loss)
        .text_or_null("note", |row| Some(&row.note).filter(|note| !note.is_empty()))
        .batch()
}

fn rows_of(team: &TeamStatus, threshold: Duration, now: Instant) -> Vec<Row<'_>> {
    let of_stream = |stream: &StreamStatus| Row {
        team: &team.team,
        stream: stream.stream.as_str(),
        begins: stream.begins,
        settled_to: stream.settled_to,
        read_to: stream.read_to,
        lag_seconds: stream.lag_seconds,
        open_windows: Some(stream.open_windows),
        events: Some(stream.events),
        late: Some(stream.late),
        gaps: Some(stream.gaps),
        seconds_to_loss: stream.seconds_to_loss,
        note: stream_note(stream, threshold),
    };
    let scanned_at = team.inventory.scanned_at;
    let inventory = Row {
        team: &team.team,
        stream: "inventory",
        read_to: scanned_at,
        lag_seconds: scanned_at.map(|at| now.since(at).as_secs()),
        note: inventory_note(&team.inventory),
        ..Row::default()
    };
    let quarantine = Row {
        team: &team.team,
        stream: "quarantine",
        events: Some(team.quarantined),
        note: "`annals quarantine list` shows why".to_owned(),
        ..Row::default()
    };
    let quarantine = (team.quarantined > 0).then_some(quarantine);
    team.streams.iter().map(of_stream).chain([inventory]).chain(quarantine).collect()
}

fn stream_note(stream: &StreamStatus, threshold: Duration) -> String {
    let mut notes = Vec::new();
    if let Some(left) = stream.short_of_time(threshold, 0) {
        notes.push(format!("warning: unread events can be lost in {}", span(left.as_secs())));
    }
    if stream.gaps > 0 {
        notes.push("findings of kind gap name the lost events".to_owned());
    }
    notes.extend(stream.unstable.iter().map(|second| format!("{second} changes at each read and remains open")));
    if stream.stream == Stream::Connections && stream.read_to.is_some() && stream.seconds_kept.is_none() {
        notes.push(SPAN_UNKNOWN.to_owned());
    }
    if stream.deprecated_history {
        notes.push("read from the deprecated per-computer history".to_owned());
    }
    notes.join("; ")
}

fn inventory_note(inventory: &InventoryStatus) -> String {
    if inventory.scanned_at.is_none() {
        return "people and computers were not read yet".to_owned();
    }
    let InventoryStatus { users, computers, groups, .. } = inventory;
    let parts = [counted(*users, "user"), counted(*computers, "computer"), counted(*groups, "group")];
    let mut notes = vec![parts.join(", ")];
    if !inventory.hidden.is_empty() {
        let hidden: Vec<&str> = inventory.hidden.iter().map(|part| part.as_str()).collect();
        notes.push(format!("the token may not see {}", hidden.join(", ")));
    }
    if inventory.unknown_fields > 0 {
        notes.push(format!(
            "{} in findings of kind unknown_field",
            counted(inventory.unknown_fields, "undocumented field")
        ));
    }
    notes.join("; ")
}

#[cfg(test)]
mod tests;

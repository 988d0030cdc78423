//! `annals quarantine`: events that do not fit the schema.

use arrow::array::RecordBatch;
use clap::{Args, Subcommand};

use crate::config::Config;
use crate::error::{Error, Exit};
use crate::model::TeamId;
use crate::pipeline::{RetriedByReason, retry_quarantine};

use super::output::{self, Columns, OutputArgs};
use super::{Global, query, reading, teams};

/// Show events that do not fit the schema, with the reason, or read them again
#[derive(Debug, Args)]
pub struct QuarantineArgs {
    #[command(subcommand)]
    command: QuarantineCommand,
}

#[derive(Debug, Subcommand)]
enum QuarantineCommand {
    /// List the quarantined events; the column raw of the view quarantine holds their text
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    Retry(RetryArgs),
}

/// Read them again with this version, and move each event that now fits the schema out of quarantine
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
struct RetryArgs {
    /// Only this team, by id or name; repeatable [default: all teams of the archive]
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
}

const AFTER: &str = "\
Try this after an upgrade. The command sends no request to the service. A released event moves to the place that it would have \
had from the beginning, with the time at which Annals first saw it. A finding (`released`) counts it. Annals makes its session again. \
The output counts the released and the remaining events by team, stream and reason.
Exit codes: 0 done, even if no event fits; 1 a team could not be written, such as beside a daemon; 2 wrong use; 3 done, but \
ledger lines have no signature (`annals anchor --sign`).";

const LIST: &str = "SELECT team_id, stream, event_id, event_time, reason, detail, first_seen_at FROM quarantine \
                    ORDER BY team_id, stream, first_seen_at, event_id";

pub fn run(global: &Global, args: &QuarantineArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    match &args.command {
        QuarantineCommand::List { output } => query::answer_named(&config, LIST, output).map(|()| Exit::Done),
        QuarantineCommand::Retry(args) => retry(&config, args),
    }
}

fn retry(config: &Config, args: &RetryArgs) -> Result<Exit, Error> {
    let archive = query::open(config)?.with_signer(reading::signer(config)?);
    let settings = reading::settings(config);
    let (mut all, mut exit) = (Vec::new(), Exit::Done);
    for team in teams::in_archive(&archive, &args.team)? {
        let retried = archive.writer(&team).and_then(|mut writer| {
            let retried = retry_quarantine(&mut writer, &settings, reading::clock().now())?;
            Ok((retried, writer.unsigned_lines()))
        });
        let label = teams::archived_label(&archive, &team);
        exit = exit.and(match retried {
            Ok((retried, unsigned)) => {
                all.push((team, retried));
                teams::exit_of_unsigned(&label, unsigned)
            }
            Err(error) => {
                output::say(&format!("team {label}: cannot read the quarantine again: {error}"));
                Exit::Fault
            }
        });
    }
    args.output.batch(&table(&all))?;
    Ok(exit)
}

fn table(all: &[(TeamId, RetriedByReason)]) -> RecordBatch {
    let rows = all.iter().flat_map(|(team, retried)| retried.iter().map(move |(why, count)| (team, why, count)));
    Columns::of(&rows.collect::<Vec<_>>())
        .text("team_id", |(team, ..)| team.as_str())
        .text("stream", |(_, (stream, _), _)| stream.as_str())
        .text("reason", |(_, (_, reason), _)| reason)
        .number("released", |(.., count)| count.released)
        .number("kept", |(.., count)| count.kept)
        .batch()
}

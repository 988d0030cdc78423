//! `annals quarantine`: events that could not be made rows.

use clap::{Args, Subcommand};

use crate::error::{Error, Exit};

use super::output::OutputArgs;
use super::{Global, look};

/// Show events that could not be made rows, and why
#[derive(Debug, Args)]
pub struct QuarantineArgs {
    #[command(subcommand)]
    command: QuarantineCommand,
}

#[derive(Debug, Subcommand)]
enum QuarantineCommand {
    /// List them; their text is the column raw of the view quarantine
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
}

const LIST: &str = "SELECT team_id, stream, event_id, event_time, reason, detail, first_seen_at FROM quarantine \
                    ORDER BY team_id, stream, first_seen_at, event_id";

pub fn run(global: &Global, args: &QuarantineArgs) -> Result<Exit, Error> {
    let QuarantineCommand::List { output } = &args.command;
    look::answer(&global.load()?, LIST, output)?;
    Ok(Exit::Done)
}

//! `annals sql`: one question, or a shell, in SQL.

use clap::Args;

use crate::error::{Error, Exit};

use super::limits::LimitArgs;
use super::output::OutputArgs;
use super::{Global, look, shell};

/// Ask the archive in SQL: views activity, connections, billing, quarantine, coverage, findings, reviews, ledger, archive_files
///
/// Without a query, and at a terminal, this is a shell: .help says what it can do. Without a query, and with statements on
/// standard input, they are answered in order up to the first that fails.
#[derive(Debug, Args)]
pub struct SqlArgs {
    /// The question; without it, or as `-`, statements are read from standard input
    query: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

pub fn run(global: &Global, args: &SqlArgs) -> Result<Exit, Error> {
    let mut config = global.load()?;
    args.limits.apply(&mut config);
    match args.query.as_deref() {
        Some(query) if query != "-" => look::answer(&config, query, &args.output)?,
        _ => shell::run(&config, &args.output, global.verbose)?,
    }
    Ok(Exit::Done)
}

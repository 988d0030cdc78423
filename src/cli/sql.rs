//! `annals sql`: one question, answered in SQL.

use std::io::{IsTerminal, Read, stdin};

use clap::Args;

use crate::error::{Error, Exit};

use super::output::OutputArgs;
use super::{Global, look};

/// Ask the archive in SQL: views activity, connections, billing, quarantine, coverage, findings, reviews, ledger, archive_files
#[derive(Debug, Args)]
pub struct SqlArgs {
    /// The question; without it, or as `-`, it is read from standard input
    query: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(global: &Global, args: &SqlArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let query = match args.query.as_deref() {
        Some(query) if query != "-" => query.to_owned(),
        _ => read_query()?,
    };
    look::answer(&config, &query, &args.output)?;
    Ok(Exit::Done)
}

fn read_query() -> Result<String, Error> {
    if stdin().is_terminal() {
        return Err(Error::Usage("no query: try annals sql \"SELECT count(*) FROM connections\"".into()));
    }
    let mut query = String::new();
    stdin().read_to_string(&mut query).map_err(|source| Error::io("cannot read the query", source))?;
    Ok(query)
}

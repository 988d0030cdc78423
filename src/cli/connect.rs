//! `annals connect`: SQL that creates the views in any DuckDB client.

use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Exit};
use crate::report::client_sql;

use super::{Global, output, query};

/// Print SQL that creates the same views in any DuckDB client, except those of `annals verify` and the function one_spelling
#[derive(Debug, Args)]
pub struct ConnectArgs {
    /// Write into this file; the file appears whole or not at all
    #[arg(long, short, value_name = "FILE", value_parser = output::writable_file())]
    output: Option<PathBuf>,
}

pub fn run(global: &Global, args: &ConnectArgs) -> Result<Exit, Error> {
    let sql = client_sql(&query::view_data(&global.load()?)?)?;
    output::to(args.output.as_deref(), |out| out.write_all(sql.as_bytes()).map_err(Error::output))?;
    Ok(Exit::Done)
}

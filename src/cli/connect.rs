//! `annals connect`: the views for any DuckDB client.

use std::path::PathBuf;

use clap::Args;

use crate::error::{Error, Exit};
use crate::report::client_sql;

use super::{Global, look, output};

/// Print SQL that gives any DuckDB client the same views
#[derive(Debug, Args)]
pub struct ConnectArgs {
    /// Write into this file, which appears whole or not at all
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(global: &Global, args: &ConnectArgs) -> Result<Exit, Error> {
    let sql = client_sql(&look::view_data(&global.load()?)?)?;
    output::to(args.output.as_deref(), |out| out.write_all(sql.as_bytes()).map_err(Error::output))?;
    Ok(Exit::Done)
}

//! `annals sql`: one query, or a shell.

use clap::Args;

use crate::error::{Error, Exit};
use crate::report::lexer;

use super::limits::LimitArgs;
use super::output::OutputArgs;
use super::{Global, query, shell};

/// Query the archive in SQL: views such as sessions, connections, activity, billing, coverage and findings; docs/sql.md lists all
///
/// Without a query, at a terminal, this command starts a shell: .help lists its commands. Without a query, and with statements on
/// standard input, it runs them in order until the first error.
#[derive(Debug, Args)]
pub struct SqlArgs {
    /// The query, or several statements; without it, or with `-`, the command reads statements from standard input
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
        Some(script) if lexer::all_statements(script).nth(1).is_some() => {
            shell::script(&config, &args.output, script.as_bytes())?;
        }
        Some(query) if query != "-" => query::answer(&config, query, &args.output)?,
        _ => shell::run(&config, &args.output, global.verbose)?,
    }
    Ok(Exit::Done)
}

//! `annals report`: the catalog of reports.

mod list;
mod pack;
mod run;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::Config;
use crate::error::{Error, Exit};
use crate::report::{Catalog, CatalogError};

use super::Global;
use super::output::{self, OutputArgs};

/// Answer the questions of auditors and security teams: list, show and run reports, or pack them as evidence
#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(subcommand)]
    what: ReportCommand,
    #[command(flatten)]
    catalog: CatalogArgs,
}

/// The folder of the user's own reports.
#[derive(Debug, Clone, Default, Args)]
pub struct CatalogArgs {
    /// A folder of your own .sql reports: a report with the id or name of a built-in report replaces it
    #[arg(long, global = true, env = "ANNALS_QUERIES", value_name = "DIR")]
    queries: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ReportCommand {
    /// List the reports: their questions, what they detect, which controls they support
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    Show(show::ShowArgs),
    Run(Box<run::RunArgs>),
    Pack(Box<pack::PackArgs>),
}

pub fn run(global: &Global, args: &ReportArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let catalog = args.catalog.load(&config)?;
    match &args.what {
        ReportCommand::List { output } => list::run(&catalog, output),
        ReportCommand::Show(show) => show::run(catalog, show),
        ReportCommand::Run(asked) => run::run(&config, catalog, asked),
        ReportCommand::Pack(asked) => pack::run(&config, catalog, asked),
    }
}

impl CatalogArgs {
    /// The built-in reports, and those of the folder that the flag, the environment or the configuration names.
    pub fn load(&self, config: &Config) -> Result<Catalog, CatalogError> {
        let catalog = Catalog::embedded();
        match self.folder(config) {
            Some(folder) => catalog.with_folder(folder),
            None => Ok(catalog),
        }
    }

    /// The folder of the user's own reports.
    pub fn folder<'a>(&'a self, config: &'a Config) -> Option<&'a PathBuf> {
        self.queries.as_ref().or(config.queries.as_ref())
    }
}

//! The command line, with one file for each verb. Data goes to standard output, messages to standard error.
//!
//! A new verb needs a variant of [`Command`] with its arguments, and an arm of `dispatch`.

mod alerts;
mod anchor;
mod bars;
mod cache;
mod connect;
mod copy;
mod demo;
mod doctor;
mod erase;
mod files;
mod global;
mod hold;
mod init;
mod limits;
mod logging;
mod man;
mod modes;
mod output;
mod plan;
mod public_key;
mod publish;
mod quarantine;
mod query;
mod reading;
mod report;
mod retention;
mod review;
mod run;
pub mod sandbox;
mod shell;
mod signals;
mod sql;
mod status;
mod sync;
mod teams;
mod terminal;
mod vacuum;
mod verify;
mod visitor;

use std::future::Future;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::{Error, Exit};
use crate::report::printable;

pub use global::Global;
pub use plan::BucketRequests;

/// Keeps a remote-access team's history: nothing lost, nothing doubled, nothing altered
#[derive(Debug, Parser)]
#[command(name = "annals", version, arg_required_else_help = true, max_term_width = 120, after_help = EXIT_CODES)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 something was not done, or a fault was found; 2 wrong use or configuration; 3 done, but a gap is \
recorded, a range was not read whole, the token no longer sees an archived team, or a check is weaker than asked.
Give the token in ANNALS_TOKEN, ANNALS_TOKEN_FILE, or api.token_file of annals.toml.";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Init(init::InitArgs),
    Sync(sync::SyncArgs),
    Run(run::RunArgs),
    Alerts(alerts::AlertsArgs),
    Plan(plan::PlanArgs),
    Status(status::StatusArgs),
    Sql(sql::SqlArgs),
    Connect(connect::ConnectArgs),
    Files(files::FilesArgs),
    Review(review::ReviewArgs),
    Retention(retention::RetentionArgs),
    Hold(hold::HoldArgs),
    Quarantine(quarantine::QuarantineArgs),
    Report(report::ReportArgs),
    Verify(verify::VerifyArgs),
    Vacuum(vacuum::VacuumArgs),
    Erase(erase::EraseArgs),
    Publish(publish::PublishArgs),
    Cache(cache::CacheArgs),
    Copy(copy::CopyArgs),
    Anchor(anchor::AnchorArgs),
    Doctor(doctor::DoctorArgs),
    Sandbox(sandbox::SandboxArgs),
    Completions(man::CompletionsArgs),
    Man(man::ManArgs),
    #[command(hide = true)]
    Visitor,
}

fn dispatch(global: &Global, command: Command) -> Result<Exit, Error> {
    limits::enough_files()?;
    if !command.writes_for_everyone() {
        crate::files::make_private(false);
    }
    match command {
        Command::Demo(args) => block_on(demo::run(global, &args)),
        Command::Init(args) => init::run(global, &args),
        Command::Sync(args) => block_on(sync::run(global, &args)),
        Command::Run(args) => run::run(global, &args),
        Command::Alerts(args) => alerts::run(global, &args),
        Command::Plan(args) => block_on(plan::run(global, &args)),
        Command::Status(args) => status::run(global, &args),
        Command::Sql(args) => sql::run(global, &args),
        Command::Connect(args) => connect::run(global, &args),
        Command::Files(args) => files::run(global, &args),
        Command::Retention(args) => retention::run(global, &args),
        Command::Hold(args) => hold::run(global, &args),
        Command::Review(args) => review::run(global, &args),
        Command::Quarantine(args) => quarantine::run(global, &args),
        Command::Report(args) => report::run(global, &args),
        Command::Verify(args) => verify::run(global, &args),
        Command::Vacuum(args) => vacuum::run(global, &args),
        Command::Erase(args) => erase::run(global, &args),
        Command::Publish(args) => publish::run(global, &args),
        Command::Cache(args) => cache::run(global, &args),
        Command::Copy(args) => copy::run(global, &args),
        Command::Anchor(args) => anchor::run(global, &args),
        Command::Doctor(args) => doctor::run(global, &args),
        Command::Sandbox(args) => block_on(async { Ok(sandbox::run(args).await.map(|()| Exit::Done)?) }),
        Command::Completions(args) => man::completions(&args),
        Command::Man(args) => man::run(&args),
        Command::Visitor => visitor::run(),
    }
}

impl Command {
    /// Whether the verb writes files without team data, which other users often read: manual pages, and a configuration for a
    /// service that runs as another user.
    const fn writes_for_everyone(&self) -> bool {
        matches!(self, Command::Man(_) | Command::Completions(_) | Command::Init(_))
    }
}

impl Arguments {
    /// Whether this process is the daemon, which reports through its log alone.
    fn is_daemon(&self) -> bool {
        matches!(self.command, Command::Run(_))
    }
}

/// Parses the arguments of this process. Wrong use ends the process with code 2, help and version with 0.
pub fn parse() -> Arguments {
    let definition = without_overridden_variables(definition());
    let matches = definition
        .clone()
        .try_get_matches()
        .unwrap_or_else(|error| printed_safely(named_by_origin(definition, error)).exit());
    let mut arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| printed_safely(error).exit());
    let is_of_environment = matches.value_source("archive") == Some(ValueSource::EnvVariable);
    arguments.global.is_archive_of_environment = is_of_environment;
    if is_of_environment && matches!(arguments.command, Command::Demo(_)) {
        // ANNALS_ARCHIVE names the archive of real teams.
        arguments.global.archive = None;
    }
    arguments
}

/// A flag overrides its variable, so clap must not even parse the variable: it can be empty or invalid.
fn without_overridden_variables(command: clap::Command) -> clap::Command {
    let is_given = |argument: &clap::Arg| {
        let mut given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        given.any(|word| word.strip_prefix("--").is_some_and(|word| word.split('=').next() == argument.get_long()))
    };
    command
        .mut_args(|argument| if is_given(&argument) { argument.env(Resettable::Reset) } else { argument })
        .mut_subcommands(without_overridden_variables)
}

/// Names the variable instead of the flag, if an invalid value comes from the environment.
fn named_by_origin(mut definition: clap::Command, mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return error };
    // Only a built definition can print its arguments.
    definition.build();
    if let Some(variable) = set_variable(&definition, shown) {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// The error without control sequences and direction marks of the arguments: clap repeats an argument as it was given.
fn printed_safely(mut error: clap::Error) -> clap::Error {
    let printable = |(kind, value): (ContextKind, &ContextValue)| match value {
        ContextValue::String(text) => Some((kind, ContextValue::String(printable(text)))),
        _ => None,
    };
    let texts: Vec<_> = error.context().filter_map(printable).collect();
    for (kind, text) in texts {
        error.insert(kind, text);
    }
    error
}

/// The variable that gives a value to the argument `shown`.
fn set_variable(definition: &clap::Command, shown: &str) -> Option<String> {
    let arguments = definition.get_arguments().filter(|argument| argument.to_string() == shown);
    let variable = arguments.filter_map(clap::Arg::get_env).find(|name| std::env::var_os(name).is_some());
    let variable = variable.map(|name| name.to_string_lossy().into_owned());
    variable.or_else(|| definition.get_subcommands().find_map(|command| set_variable(command, shown)))
}

/// Starts logging, runs the verb, and prints the error if it fails.
pub fn run(arguments: Arguments) -> Exit {
    let is_logging = logging::start_logging(&arguments);
    let Arguments { global, command } = arguments;
    match is_logging.and_then(|()| signals::survive_size_limits()).and_then(|()| dispatch(&global, command)) {
        Ok(exit) => exit,
        Err(error) => {
            if !matches!(error, Error::OutputClosed) {
                output::say(&format!("annals: {}", error.render(global.verbose)));
            }
            error.exit()
        }
    }
}

/// Runs a verb that waits for the network or for time.
fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    runtime()?.block_on(work)
}

fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|source| Error::io("cannot start the runtime", source))
}

/// The definition of all verbs, for completions and the manual.
fn definition() -> clap::Command {
    Arguments::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definition_is_consistent() {
        super::definition().debug_assert();
    }
}

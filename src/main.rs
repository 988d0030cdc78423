//! `annals`: arguments, then tracing, then the verb, then the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = annals::cli::parse();
    annals::cli::start_logging(&arguments);
    annals::cli::run(arguments).into()
}

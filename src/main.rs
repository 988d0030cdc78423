//! `annals`: parses arguments, starts logging, runs the verb, and returns the exit code.

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator;

fn main() -> ExitCode {
    let arguments = annals::cli::parse();
    annals::cli::start_logging(&arguments);
    annals::cli::run(arguments).into()
}

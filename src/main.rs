//! `annals`: parses arguments, runs the verb, and returns the exit code.

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator;

fn main() -> ExitCode {
    annals::cli::run(annals::cli::parse()).into()
}

//! `annals alerts`: tests that alerts arrive.

use clap::{Args, Subcommand};

use crate::alert::{targets, test_alert};
use crate::error::{Error, Exit};

use super::{Global, block_on, output, reading};

/// Test that the daemon's alerts arrive
#[derive(Debug, Clone, Args)]
pub struct AlertsArgs {
    #[command(subcommand)]
    what: AlertsCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum AlertsCommand {
    /// Send a test alert to every configured target
    Test,
}

pub fn run(global: &Global, args: &AlertsArgs) -> Result<Exit, Error> {
    let AlertsCommand::Test = args.what;
    let config = global.load()?;
    let targets = targets(&config.alerts).map_err(|error| Error::Usage(error.to_string()))?;
    if targets.is_empty() {
        return Err(Error::Usage(
            "no alert target is configured: set alerts.webhook or alerts.command in annals.toml".to_owned(),
        ));
    }
    let clock = reading::clock();
    let test = test_alert(clock.now());
    let mut exit = Exit::Done;
    block_on(async {
        for target in &targets {
            match target.deliver(&test, clock.as_ref()).await {
                Ok(()) => output::say(&format!("{}: the target accepted the test alert", target.name())),
                Err(error) => {
                    output::say(&format!("{}: {error}", target.name()));
                    exit = Exit::Fault;
                }
            }
        }
        Ok(())
    })?;
    Ok(exit)
}

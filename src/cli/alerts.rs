//! `annals alerts`: whether warnings arrive.

use clap::{Args, Subcommand};

use crate::alert::{rehearsal, targets};
use crate::error::{Error, Exit};

use super::{Global, block_on, output, reading};

/// Whether warnings of the daemon arrive
#[derive(Debug, Clone, Args)]
pub struct AlertsArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Subcommand)]
enum What {
    /// Send a warning that says it is a test to everybody who is configured
    Test,
}

pub fn run(global: &Global, args: &AlertsArgs) -> Result<Exit, Error> {
    let What::Test = args.what;
    let config = global.load()?;
    let targets = targets(&config.alerts).map_err(|error| Error::Usage(error.to_string()))?;
    if targets.is_empty() {
        return Err(Error::Usage("nobody is warned: set alerts.webhook or alerts.command in annals.toml".to_owned()));
    }
    let clock = reading::clock();
    let test = rehearsal(clock.now());
    let mut exit = Exit::Done;
    block_on(async {
        for target in &targets {
            match target.deliver(&test, clock.as_ref()).await {
                Ok(()) => output::say(&format!("{}: it took the test", target.name())),
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

//! `annals completions` and `annals man`.

use std::fs::create_dir_all;
use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::error::{Error, Exit};

use super::{definition, output};

/// Print the completion script for a shell
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    shell: Shell,
}

/// Print the manual page, or write one page for each verb
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write the pages of all verbs into this directory instead, and create it if necessary
    #[arg(long, short, value_name = "DIR", value_parser = output::outside_archives())]
    output: Option<PathBuf>,
}

pub fn completions(args: &CompletionsArgs) -> Result<Exit, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut definition(), "annals", &mut script);
    output::print(&script)?;
    Ok(Exit::Done)
}

pub fn run(args: &ManArgs) -> Result<Exit, Error> {
    match &args.output {
        Some(directory) => {
            let written = create_dir_all(directory).and_then(|()| clap_mangen::generate_to(definition(), directory));
            let place = directory.display();
            written.map_err(|e| Error::Usage(format!("cannot write the manual pages into {place}: {e}")))?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(definition())
                .render(&mut page)
                .map_err(|source| Error::io("cannot make the manual page", source))?;
            output::print(&page)?;
        }
    }
    Ok(Exit::Done)
}

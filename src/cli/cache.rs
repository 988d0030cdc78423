//! `annals cache`: the local cache of files from a bucket.

use clap::{Args, Subcommand};

use crate::archive::CacheError;
use crate::error::{Error, Exit};

use super::output::{self, Columns, OutputArgs};
use super::{Global, query};

/// Show or clear the local cache of files from buckets
#[derive(Debug, Args)]
pub struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
}

#[derive(Debug, Subcommand)]
enum CacheCommand {
    /// Show the number of cached files, their size in bytes, and the configured maximum
    Status {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Remove every cached file; running queries keep their files
    Clear {
        #[command(flatten)]
        output: OutputArgs,
    },
}

pub fn run(global: &Global, args: &CacheArgs) -> Result<Exit, Error> {
    let config = global.load()?;
    let cache = query::cache(&config);
    let failed = |error: CacheError| Error::Refused(error.to_string());
    let (extent, output) = match &args.command {
        CacheCommand::Status { output } => (cache.extent().map_err(failed)?, output),
        CacheCommand::Clear { output } => {
            let removed = cache.clear().map_err(failed)?;
            output::say(&format!("removed {} files of {} bytes", removed.files, removed.bytes));
            (cache.extent().map_err(failed)?, output)
        }
    };
    let rows = Columns::of(&[extent])
        .text("directory", |_| cache.directory().display().to_string())
        .number("files", |extent| extent.files)
        .number("bytes", |extent| extent.bytes)
        .number("bytes_max", |_| cache.bytes_max())
        .batch();
    output.batch(&rows)?;
    Ok(Exit::Done)
}

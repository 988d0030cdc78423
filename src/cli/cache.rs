//! `annals cache`: the local cache of files from a bucket.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use clap::{Args, Subcommand};

use crate::archive::{CacheError, CacheExtent};
use crate::error::{Error, Exit};

use super::output::{self, OutputArgs};
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
    output.batch(&table(&cache.directory().display().to_string(), extent, cache.bytes_max()))?;
    Ok(Exit::Done)
}

fn table(directory: &str, extent: CacheExtent, bytes_max: u64) -> RecordBatch {
    let count = |number: u64| -> ArrayRef { Arc::new(UInt64Array::from(vec![number])) };
    let columns: [(&str, ArrayRef); 4] = [
        ("directory", Arc::new(StringArray::from(vec![directory]))),
        ("files", count(extent.files)),
        ("bytes", count(extent.bytes)),
        ("bytes_max", count(bytes_max)),
    ];
    output::table(columns)
}

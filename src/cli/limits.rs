//! Flags that limit the SQL engine, for every verb that runs queries.

use std::path::PathBuf;

use clap::Args;
use rustix::process::{Resource, getrlimit};

use crate::config::{Config, check_threads, parse_memory};
use crate::error::Error;
use crate::report::Limits;

/// With fewer files the runtime cannot start, and panics.
const FILES_MIN: u64 = 16;
/// Enough for a sync, with a reserve.
const FILES_RECOMMENDED: u64 = 256;

#[derive(Debug, Clone, Default, Args)]
pub struct LimitArgs {
    /// Memory of the SQL engine, as 512MiB or 2GiB; the engine spills to disk above it [default: 1GiB]
    #[arg(long, env = "ANNALS_SQL_MEMORY", value_name = "SIZE", value_parser = parse_memory, help_heading = "SQL engine")]
    memory: Option<u32>,
    /// Threads of the SQL engine [default: one for each core, up to 8]
    #[arg(long, env = "ANNALS_SQL_THREADS", value_name = "N", value_parser = threads, help_heading = "SQL engine")]
    threads: Option<u32>,
    /// Directory for the files that queries spill; the command removes them [default: the system's]
    #[arg(long, env = "ANNALS_SQL_TEMP_DIRECTORY", value_name = "DIR", help_heading = "SQL engine")]
    temp_directory: Option<PathBuf>,
}

fn threads(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number")).and_then(check_threads)
}

impl LimitArgs {
    /// Flags and environment variables override the file.
    pub fn apply(&self, config: &mut Config) {
        let sql = &mut config.sql;
        sql.memory_mib = self.memory.or(sql.memory_mib);
        sql.threads = self.threads.or(sql.threads);
        sql.temp_directory = self.temp_directory.clone().or_else(|| sql.temp_directory.take());
    }
}

/// The limits that `config` sets for the engine.
pub fn limits(config: &Config) -> Limits {
    let default = Limits::default();
    Limits {
        memory_mib: config.sql.memory_mib.unwrap_or(default.memory_mib),
        threads: config.sql.threads.unwrap_or(default.threads),
        spill_parent: config.sql.temp_directory.clone().unwrap_or(default.spill_parent),
    }
}

/// # Errors
/// When this process may open so few files at once that it cannot work.
pub fn enough_files() -> Result<(), Error> {
    match getrlimit(Resource::Nofile).current {
        Some(files) if files < FILES_MIN => Err(Error::Refused(format!(
            "this process may open only {files} files at once (ulimit -n), which is too few: allow {FILES_RECOMMENDED}"
        ))),
        _ => Ok(()),
    }
}

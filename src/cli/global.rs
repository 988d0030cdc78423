//! Flags and environment variables that every verb accepts.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use secrecy::SecretString;

use crate::api::{HttpOptions, TokenSource};
use crate::config::{Config, Overrides, open_to_others};
use crate::error::Error;
use crate::files;
use crate::model::Shard;

#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// Configuration file [default: annals.toml, if the file exists]
    #[arg(long, global = true, env = "ANNALS_CONFIG", value_name = "FILE", help_heading = "Everywhere")]
    pub config: Option<PathBuf>,
    /// Place of the archive: a directory, or a bucket as s3://bucket/prefix (gs://, az://)
    #[arg(long, global = true, env = "ANNALS_ARCHIVE", value_name = "DIR", help_heading = "Everywhere")]
    pub archive: Option<PathBuf>,
    /// `ANNALS_ARCHIVE` gives `archive`.
    #[arg(skip)]
    pub is_archive_of_environment: bool,
    /// Place of the ledger, if it lies elsewhere than the archive: a directory or a bucket
    #[arg(long, global = true, env = "ANNALS_LEDGER", value_name = "DIR", help_heading = "Everywhere")]
    pub ledger: Option<PathBuf>,
    /// Address of the service
    #[arg(
        long,
        global = true,
        env = "ANNALS_BASE_URL",
        value_name = "URL",
        help_heading = "Everywhere",
        hide_env_values = true
    )]
    pub base_url: Option<String>,
    /// Maximum requests a second to the service; 0 for no limit
    #[arg(long, global = true, env = "ANNALS_REQUESTS_PER_SECOND", value_name = "N", help_heading = "Everywhere")]
    pub requests_per_second: Option<f64>,
    /// Create files that the group can read: modes 0640 and 0750 instead of 0600 and 0700
    #[arg(
        long,
        global = true,
        env = "ANNALS_GROUP_READABLE",
        value_name = "true|false",
        num_args = 0..=1,
        default_missing_value = "true",
        require_equals = true,
        help_heading = "Everywhere"
    )]
    pub group_readable: Option<bool>,
    /// Read only the teams of shard K of N, for a fleet of N daemons: 2/8 is the second of eight
    #[arg(long, global = true, env = "ANNALS_SHARD", value_name = "K/N", help_heading = "Everywhere")]
    pub shard: Option<Shard>,
    /// Log debug messages, and print every cause of an error
    #[arg(long, short, global = true, help_heading = "Everywhere")]
    pub verbose: bool,
}

impl Global {
    /// The configuration, as [`Global::read`] reads it. Sets the modes of the files that this process creates from now on.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub fn load(&self) -> Result<Config, Error> {
        let config = self.read()?;
        files::make_private(config.group_readable);
        Ok(config)
    }

    /// Joins file, environment and flags. Logs a warning for each unwise setting.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub fn read(&self) -> Result<Config, Error> {
        let config = Config::load(Overrides {
            config: self.config.clone(),
            archive: self.archive.clone(),
            is_archive_of_environment: self.is_archive_of_environment,
            ledger: self.ledger.clone(),
            base_url: self.base_url.clone(),
            requests_per_second: self.requests_per_second,
            token: token_source_of_environment()?,
            group_readable: self.group_readable,
            shard: self.shard,
        })?;
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        Ok(config)
    }
}

/// How to reach the service that `config` names. Logs a warning if other users can read the token's file.
///
/// # Errors
/// When no address or no token is configured.
pub fn http_options(config: &Config) -> Result<HttpOptions, Error> {
    let token = config.token_source()?.clone();
    if let Some(warning) = open_to_others(&token) {
        tracing::warn!("{warning}");
    }
    Ok(HttpOptions {
        requests_per_second: config.requests_per_second,
        concurrency: config.concurrency,
        deadline: config.deadline,
        ..HttpOptions::new(config.base_url()?.as_str(), token)
    })
}

/// The token that the environment names, if any.
///
/// # Errors
/// When a variable is empty or not UTF-8.
pub fn token_source_of_environment() -> Result<Option<TokenSource>, Error> {
    token_source(env::var_os("ANNALS_TOKEN"), env::var_os("ANNALS_TOKEN_FILE"))
}

fn token_source(token: Option<OsString>, file: Option<OsString>) -> Result<Option<TokenSource>, Error> {
    match (token, file) {
        (Some(token), _) => match token.into_string() {
            Ok(token) if token.is_empty() => Err(Error::Usage("ANNALS_TOKEN is empty: set it, or unset it".into())),
            Ok(token) => Ok(Some(TokenSource::Fixed(SecretString::from(token)))),
            Err(_) => Err(Error::Usage("ANNALS_TOKEN is not valid UTF-8".into())),
        },
        (None, Some(path)) if path.is_empty() => {
            Err(Error::Usage("ANNALS_TOKEN_FILE is empty: set it, or unset it".into()))
        }
        (None, Some(path)) => Ok(Some(TokenSource::File(path.into()))),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_gives_the_token_or_its_file() {
        assert!(matches!(token_source(None, None), Ok(None)));
        assert!(matches!(token_source(Some("t".into()), Some("f".into())), Ok(Some(TokenSource::Fixed(_)))));
        assert!(matches!(token_source(None, Some("f".into())), Ok(Some(TokenSource::File(_)))));
        assert!(token_source(Some("".into()), None).is_err() && token_source(None, Some("".into())).is_err());
    }
}

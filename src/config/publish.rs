//! When open tables are published, and the address of the archive for their readers.

use super::cron::Cron;
use super::{ConfigError, file};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Publish {
    /// `None`: the daemon publishes nothing.
    pub schedule: Option<Cron>,
    /// `None`: readers find the archive where this program does.
    pub location: Option<String>,
}

impl Publish {
    pub(super) fn of_file(section: &file::Publish, place: &impl Fn(&str) -> String) -> Result<Self, ConfigError> {
        let invalid = |key: &str, message: String| ConfigError::invalid(place(key), message);
        let schedule = section.schedule.as_deref().map(str::parse).transpose();
        let schedule = schedule.map_err(|message| invalid("publish.schedule", message))?;
        let location = section.location.as_deref().map(check_location).transpose();
        let location = location.map_err(|message| invalid("publish.location", message))?;
        Ok(Self { schedule, location })
    }
}

/// Engines need an address with a scheme. Each version of a table contains the address, so it must contain no credentials.
fn check_location(text: &str) -> Result<String, String> {
    let rest = text.split_once("://").map(|(_, rest)| rest);
    let authority = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    match rest {
        None | Some("") => Err(format!("{text:?} is no address such as s3://bucket/prefix or file:///srv/archive")),
        Some(rest) if rest.contains('?') || authority.contains(':') && authority.contains('@') => {
            Err("the address must hold no credentials: readers have their own".to_owned())
        }
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::check_location;

    #[test]
    fn a_location_is_an_address_without_credentials() {
        for (text, location) in [
            ("s3://bucket/prefix/", Some("s3://bucket/prefix")),
            ("file:///srv/archive", Some("file:///srv/archive")),
            (
                "abfss://container@account.dfs.core.windows.net/a",
                Some("abfss://container@account.dfs.core.windows.net/a"),
            ),
            ("/srv/archive", None),
            ("s3://", None),
            ("s3://key:secret@bucket/a", None),
            ("s3://bucket/a?key=secret", None),
        ] {
            assert_eq!(check_location(text).ok().as_deref(), location, "{text}");
        }
    }
}

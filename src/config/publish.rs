//! When open tables are published, and the address of the archive for their readers.

use super::cron::Cron;
use super::{ConfigError, file};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Publish {
    /// `None`: the daemon only updates existing tables, after an expiry.
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

/// The schemes of Azure, whose addresses are of the form `abfss://container@account/path`.
const AZURE: [&str; 4] = ["abfs", "abfss", "wasb", "wasbs"];

/// Engines need an address with a scheme. Each version of a table contains the address, so it must contain no credentials.
fn check_location(text: &str) -> Result<String, String> {
    match text.split_once("://") {
        None | Some((_, "")) => {
            Err(format!("{text:?} is no address such as s3://bucket/prefix or file:///srv/archive"))
        }
        Some((scheme, rest)) if may_hold_credentials(scheme, rest) => {
            Err("the address must hold no credentials, so no ?, # or @: readers have their own".to_owned())
        }
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
    }
}

/// A secret can hold a slash: look for its `@` in the whole address. The path of a local directory holds none.
fn may_hold_credentials(scheme: &str, rest: &str) -> bool {
    let is_local = scheme == "file" && rest.starts_with('/');
    let may_have_at = match rest.split_once('@') {
        Some((container, rest)) => {
            is_local || AZURE.contains(&scheme) && !container.contains([':', '/']) && !rest.contains('@')
        }
        None => true,
    };
    rest.contains(['?', '#']) || !may_have_at
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
            ("s3://bucket/a#secret", None),
            // A secret key can hold a slash.
            ("s3://AKIAEXAMPLE:abc/def+ghi@bucket/prefix", None),
            ("https://SECRETTOKEN@host/x", None),
            ("abfss://container:secret@account/a", None),
            ("abfss://container/secret@account/a", None),
            ("wasbs://container@secret@account/a", None),
            ("file://name:secret@host/a", None),
            ("file:///srv/@archive", Some("file:///srv/@archive")),
        ] {
            assert_eq!(check_location(text).ok().as_deref(), location, "{text}");
        }
    }
}

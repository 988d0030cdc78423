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
        let location = location.map_err(|message| invalid("publish.location", message.to_owned()))?;
        Ok(Self { schedule, location })
    }
}

/// The schemes of Azure, whose addresses are of the form `abfss://container@account/path`.
const AZURE: [&str; 4] = ["abfs", "abfss", "wasb", "wasbs"];
/// The value can hold a credential, so no message repeats it.
const WRONG_FORM: &str = "write an address such as s3://bucket/prefix, abfss://container@account.dfs.core.windows.net/prefix \
    or file:///srv/archive, without control characters and without ..";
const WRONG_CHARACTER: &str = "the address must hold no credentials: use only letters, digits and . - _ = + ~ / in it, a \
    port such as :8020, and in Azure's addresses one @ after the container";

/// Engines need an address with a scheme. Each version of a table contains the address, so it must contain no credentials.
fn check_location(text: &str) -> Result<String, &'static str> {
    let (scheme, rest) = text.split_once("://").ok_or(WRONG_FORM)?;
    let is_word = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let is_empty = rest.trim_matches('/').is_empty();
    if !is_word || is_empty || rest.chars().any(char::is_control) || rest.split('/').any(|part| part == "..") {
        return Err(WRONG_FORM);
    }
    let is_local = scheme == "file" && rest.starts_with('/');
    if !is_local && !is_free_of_credentials(scheme, rest) {
        return Err(WRONG_CHARACTER);
    }
    if rest.contains(['?', '#']) {
        return Err("engines cut an address at ? and #: give an address without them");
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// A credential has an `@`, `:` or `?`, also percent-encoded or in a wide form, and a secret key can hold a slash. The path of
/// a local directory holds none.
fn is_free_of_credentials(scheme: &str, rest: &str) -> bool {
    let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_=+~/".contains(&b));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (container, host) = match host.split_once('@') {
        Some((container, host)) if AZURE.contains(&scheme) && !container.is_empty() => (container, host),
        Some(_) => return false,
        None => ("", host),
    };
    let (host, port) = host.split_once(':').unwrap_or((host, "0"));
    is_plain(container) && is_plain(host) && is_plain(path) && port.parse::<u16>().is_ok()
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
            ("file:///srv/my archive/\u{e4}%20[1]", Some("file:///srv/my archive/\u{e4}%20[1]")),
            ("hdfs://node:8020/archive", Some("hdfs://node:8020/archive")),
            ("hdfs://node:secret/archive", None),
            ("s3://AKIAEXAMPLE%3Asecret%40bucket/p", None),
            ("s3://bucket/p%3Fsig%3Dx", None),
            ("s3://user\u{ff1a}secret\u{ff20}bucket/p", None),
            ("s3://bucket/a@b", None),
            ("s3://bu cket/x", None),
            ("s3://bucket/\n", None),
            ("file:///srv/\u{7f}archive", None),
            ("s3://bucket/../x", None),
            ("file:///srv/../etc", None),
            ("file:///srv/a?b", None),
            ("file:///srv/a#b", None),
            ("file:///", None),
            ("abfss://@account.dfs.core.windows.net/a", None),
            ("s3:/user:secret@bucket", None),
            ("//user:secret@host/x", None),
            ("file:user:secret@host", None),
            ("user:secret@host://x", None),
        ] {
            assert_eq!(check_location(text).ok().as_deref(), location, "{text}");
        }
    }
}

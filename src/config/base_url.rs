//! Checks the address of the service.

use url::{Host, ParseError, Url};

use super::ConfigError;

pub(super) fn check_base_url(place: &str, text: &str, warnings: &mut Vec<String>) -> Result<Url, ConfigError> {
    let no_host = || ConfigError::invalid(place, "the address must begin with https:// or http:// and a host");
    let mut url = Url::parse(text).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => no_host(),
        error => ConfigError::invalid(place, format!("the address is not valid: {error}")),
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(no_host());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConfigError::invalid(place, "the address must not contain a user or a password: use a token"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(ConfigError::invalid(place, "the address must not contain a query or a fragment"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if path.ends_with("/v1") {
        return Err(ConfigError::invalid(place, "leave out /v1 at the end of the address: Annals adds it"));
    }
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && !local {
        warnings.push(format!("{place}: with http://, others on the network can read the token: use https://"));
    }
    url.set_path(&path);
    Ok(url)
}

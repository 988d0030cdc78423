//! Clients of the three kinds of object stores, configured by the environment variables of their own tools.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, Error, ObjectStore as Client, RetryConfig};
use url::Url;

use super::connection::Connector;
use super::profile::{Settings, with_profile};
use super::signed::SignedRequests;
use crate::model::{BucketLocation, Scheme};

/// The deadline of a request with its body: 16 MiB in this time need 1.1 Mbit/s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The variables that hold an address.
const ADDRESSES: [&str; 8] = [
    "AWS_ENDPOINT",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_STS",
    "AWS_METADATA_ENDPOINT",
    "AZURE_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
    "GOOGLE_BASE_URL",
];
/// The variable that holds a JSON text, which can have line breaks.
const JSON_KEY: &str = "GOOGLE_SERVICE_ACCOUNT_KEY";

/// The environment's settings for a kind of store; for S3, with the user's AWS profile.
pub(super) fn environment(scheme: Scheme) -> io::Result<Settings> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with(scheme.variables()));
    match scheme {
        Scheme::S3 => with_profile(variables.collect(), std::env::home_dir().as_deref()),
        Scheme::Google | Scheme::Azure => Ok(variables.collect()),
    }
}

/// How long requests are retried when a store is busy or does not answer.
pub(super) fn patient() -> RetryConfig {
    let (init_backoff, max_backoff) = (Duration::from_millis(100), Duration::from_secs(15));
    let backoff = BackoffConfig { init_backoff, max_backoff, base: 2.0 };
    RetryConfig { backoff, max_retries: 10, retry_timeout: Duration::from_secs(90) }
}

pub(super) fn client(
    location: &BucketLocation,
    settings: &[(String, String)],
    retry: RetryConfig,
    connector: Connector,
) -> Result<(Arc<dyn Client>, Option<SignedRequests>), Error> {
    let options = ClientOptions::new().with_timeout(REQUEST_TIMEOUT).with_read_timeout(READ_TIMEOUT);
    Ok(match location.scheme() {
        Scheme::S3 => {
            let builder = AmazonS3Builder::new().with_client_options(options);
            let builder = configured(builder, location, settings, AmazonS3Builder::with_config)?;
            let no_certificates = AmazonS3ConfigKey::Client(ClientConfigKey::NoSystemCertificates);
            let builder = match needs_certificates(&builder, has_proxy()) {
                true => builder,
                false => builder.with_config(no_certificates, "true"),
            };
            let builder = builder.with_bucket_name(location.bucket()).with_retry(retry);
            let signer = Arc::new(builder.with_http_connector(connector.clone()).build()?);
            // The builder makes the client of the bucket last, with the configured proxy and certificates.
            let client = connector.newest().expect("BUG: the builder makes a client");
            (signer.clone(), Some(SignedRequests { signer, client }))
        }
        Scheme::Google => {
            let builder = GoogleCloudStorageBuilder::new().with_client_options(options.with_allow_http(true));
            let builder = configured(builder, location, settings, GoogleCloudStorageBuilder::with_config)?;
            let builder = builder.with_bucket_name(location.bucket()).with_retry(retry);
            (Arc::new(builder.with_http_connector(connector).build()?), None)
        }
        Scheme::Azure => {
            let builder = MicrosoftAzureBuilder::new().with_client_options(options);
            let builder = configured(builder, location, settings, MicrosoftAzureBuilder::with_config)?;
            let builder = builder.with_container_name(location.bucket()).with_retry(retry);
            (Arc::new(builder.with_http_connector(connector).build()?), None)
        }
    })
}

/// Whether the client makes encrypted connections. Loading the system's certificates slows a repeated question:
/// docs/decisions/0010-bucket-cache.md.
fn needs_certificates(builder: &AmazonS3Builder, has_proxy: bool) -> bool {
    let value = |key| builder.get_config_value(&key);
    let endpoint = value(AmazonS3ConfigKey::S3Endpoint).or_else(|| value(AmazonS3ConfigKey::Endpoint));
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    // Other credentials come from services with addresses of their own, and the connection to a proxy can be encrypted.
    let has_keys = value(AmazonS3ConfigKey::AccessKeyId).is_some();
    !is_plain || !has_keys || has_proxy || value(AmazonS3ConfigKey::Client(ClientConfigKey::ProxyUrl)).is_some()
}

/// Whether a variable such as `http_proxy` names a proxy.
fn has_proxy() -> bool {
    std::env::vars_os().any(|(name, _)| name.to_string_lossy().to_ascii_lowercase().ends_with("_proxy"))
}

/// Gives a builder the settings that it knows: a variable that it does not know belongs to another program.
fn configured<B, K: FromStr>(
    builder: B,
    location: &BucketLocation,
    settings: &[(String, String)],
    set: impl Fn(B, K, String) -> B,
) -> Result<B, Error> {
    let mut known = settings.iter().filter(|(name, _)| name.starts_with(location.scheme().variables()));
    known.try_fold(builder, |builder, (name, value)| match name.to_ascii_lowercase().parse() {
        Ok(key) => check_setting(name, value).map(|()| set(builder, key, value.clone())),
        Err(_) => Ok(builder),
    })
}

/// The client library panics on such values. No message repeats a value, which can be a secret.
fn check_setting(name: &str, value: &str) -> Result<(), Error> {
    let name = name.to_ascii_uppercase();
    let bad = |why: &str| Err(Error::Generic { store: "setting", source: format!("{name} {why}").into() });
    if name != JSON_KEY && value.contains(char::is_control) {
        return bad("holds a line break or another control character");
    }
    if ADDRESSES.contains(&name.as_str()) && !is_address(value) {
        return bad("is not an address: begin with https:// or http:// and a host, without a query");
    }
    Ok(())
}

/// The library joins the text with the name of an object, so the text itself must be an address.
fn is_address(text: &str) -> bool {
    let rest = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_plain = |rest: &str| rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:/[]@%".contains(&b));
    rest.is_some_and(|rest| !rest.starts_with('/') && is_plain(rest)) && Url::parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_connection_with_keys_needs_no_certificates() {
        let (endpoint, keys) = (("aws_endpoint_url", "http://127.0.0.1:9000"), ("aws_access_key_id", "key"));
        let encrypted = ("aws_endpoint_url", "https://minio.example");
        for (settings, has_proxy, expected) in [
            (&[endpoint, keys][..], false, false),
            (&[endpoint, keys], true, true),
            (&[endpoint, keys, ("aws_proxy_url", "https://proxy.example")], false, true),
            (&[endpoint], false, true),
            (&[encrypted, keys], false, true),
            (&[keys], false, true),
            (&[endpoint, keys, ("aws_endpoint_url_s3", "https://minio.example")], false, true),
            (&[encrypted, keys, ("aws_endpoint_url_s3", "http://127.0.0.1:9000")], false, false),
        ] {
            let set = |builder: AmazonS3Builder, (name, value): &(&str, &str)| {
                builder.with_config(name.parse().unwrap(), *value)
            };
            let builder = settings.iter().fold(AmazonS3Builder::new(), set);
            assert_eq!(needs_certificates(&builder, has_proxy), expected, "{settings:?}, proxy {has_proxy}");
        }
    }
}

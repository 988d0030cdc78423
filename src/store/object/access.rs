//! Clients of the three kinds of object stores, configured by the environment variables of their own tools.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{BackoffConfig, ClientConfigKey, ClientOptions, Error, ObjectStore as Client, RetryConfig};

use super::connection::Connector;
use super::profile::{Settings, with_profile};
use super::signed::SignedRequests;
use crate::model::{BucketLocation, Scheme};

/// The deadline of a request with its body: 16 MiB in this time need 1.1 Mbit/s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
const READ_TIMEOUT: Duration = Duration::from_secs(30);

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
            let builder = configured(builder, location, settings, AmazonS3Builder::with_config);
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
            let builder = configured(builder, location, settings, GoogleCloudStorageBuilder::with_config);
            let builder = builder.with_bucket_name(location.bucket()).with_retry(retry);
            (Arc::new(builder.with_http_connector(connector).build()?), None)
        }
        Scheme::Azure => {
            let builder = MicrosoftAzureBuilder::new().with_client_options(options);
            let builder = configured(builder, location, settings, MicrosoftAzureBuilder::with_config);
            let builder = builder.with_container_name(location.bucket()).with_retry(retry);
            (Arc::new(builder.with_http_connector(connector).build()?), None)
        }
    })
}

/// Whether the client makes encrypted connections. Loading the system's certificates slows a repeated question:
/// docs/decisions/0010-bucket-cache.md.
fn needs_certificates(builder: &AmazonS3Builder, has_proxy: bool) -> bool {
    let value = |key| builder.get_config_value(&key);
    let is_plain = value(AmazonS3ConfigKey::Endpoint).is_some_and(|endpoint| endpoint.starts_with("http://"));
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
) -> B {
    let known = settings.iter().filter(|(name, _)| name.starts_with(location.scheme().variables()));
    known.fold(builder, |builder, (name, value)| match name.to_ascii_lowercase().parse() {
        Ok(key) => set(builder, key, value.clone()),
        Err(_) => builder,
    })
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
        ] {
            let set = |builder: AmazonS3Builder, (name, value): &(&str, &str)| {
                builder.with_config(name.parse().unwrap(), *value)
            };
            let builder = settings.iter().fold(AmazonS3Builder::new(), set);
            assert_eq!(needs_certificates(&builder, has_proxy), expected, "{settings:?}, proxy {has_proxy}");
        }
    }
}

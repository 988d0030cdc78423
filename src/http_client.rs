//! Starts HTTP clients. A client for HTTPS then loads the certificates of authorities on this machine.

use std::env;
use std::error::Error;
use std::path::Path;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use crate::files::{self, Links};

/// The library's words when it has found no certificate. It names no place.
const NONE_FOUND: &str = "No CA certificates were loaded";
/// The largest file of certificates.
const BYTES_MAX: u64 = 64 << 20;

/// Starts a client for `address`. The client follows no redirect, and tells no server where a request comes from.
///
/// # Errors
/// Why the client cannot start.
pub fn start(builder: ClientBuilder, address: &str) -> Result<Client, String> {
    // If a provider is installed already, this call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = builder.redirect(Policy::none()).referer(false);
    if address.starts_with("http://") {
        // Plain HTTP needs no certificates, so load none: a machine without certificates can still use the sandbox.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| fault(&error))
}

/// Why an HTTP client cannot start, with every cause. If it found no certificate: the place where it looked, and the next step.
pub fn fault(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    if text.contains(NONE_FOUND) { none_found() } else { text }
}

/// The variables replace the system's certificates.
fn none_found() -> String {
    if let Some(file) = env::var_os("SSL_CERT_FILE") {
        let why = match files::read(Path::new(&file), Links::Follow, BYTES_MAX) {
            Ok(_) => "it holds no valid certificate in PEM form".to_owned(),
            Err(error) => format!("cannot read this file: {error}"),
        };
        return format!("SSL_CERT_FILE: {}: {why}: name a file of certificates, or unset the variable", file.display());
    }
    if let Some(places) = env::var_os("SSL_CERT_DIR").filter(|places| !places.is_empty()) {
        let places = places.display();
        return format!(
            "SSL_CERT_DIR: {places}: no certificate is there: name a directory of certificates, or unset the variable"
        );
    }
    "this machine has no certificates of authorities: install them (the package ca-certificates), or name their file in SSL_CERT_FILE"
        .to_owned()
}

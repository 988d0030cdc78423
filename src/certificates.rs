//! The certificates of authorities on this machine, which every HTTPS client loads when it starts.

use std::env;
use std::error::Error;
use std::path::Path;

use crate::files::{self, Links};

/// The library's words when it has found no certificate. It names no place.
const NONE_FOUND: &str = "No CA certificates were loaded";
/// The largest file of certificates.
const BYTES_MAX: u64 = 64 << 20;

/// Why an HTTP client cannot start, with every cause. If it found no certificate: where it looked, and what to do.
pub fn client_fault(error: &dyn Error) -> String {
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

//! The public keys whose signatures a check of the archive expects.

use std::path::Path;

use crate::archive::PublicKey;
use crate::config::Config;
use crate::error::Error;
use crate::files::{self, Links};
use crate::report::printable;

/// A key is short: a longer file is another file.
const KEY_BYTES_MAX: u64 = 1 << 20;

/// The configured public key, if any.
///
/// # Errors
/// When the key is invalid, or its file cannot be read.
pub fn expected_keys(config: &Config) -> Result<Vec<PublicKey>, Error> {
    config.signing.public_key.iter().map(|key| key_of("signing.public_key", key)).collect()
}

/// A public key, or the key in a file.
///
/// # Errors
/// When it is neither.
pub fn key_of(place: &str, given: &str) -> Result<PublicKey, Error> {
    if let Ok(key) = given.trim().parse() {
        return Ok(key);
    }
    let text = files::read_text(Path::new(given), Links::Follow, KEY_BYTES_MAX).map_err(|source| {
        Error::Usage(format!("{place}: {}: neither a public key nor a readable file: {source}", printable(given)))
    })?;
    text.trim().parse().map_err(|e| Error::Usage(format!("{place}: {}: {e}", printable(given))))
}

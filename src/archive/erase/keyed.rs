//! Keyed digests: HMAC-SHA256. Without the key, a digest confirms no guess.

use std::fmt;

use ring::hmac;

use crate::model::Digest;

/// 32 secret bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// The HMAC-SHA256 of `domain` and `bytes` under `key`.
pub fn keyed(key: &Key, domain: &str, bytes: &[u8]) -> Digest {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key.0));
    context.update(domain.as_bytes());
    context.update(bytes);
    let tag = context.sign();
    Digest(tag.as_ref().try_into().expect("BUG: SHA-256 has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second case of RFC 4231, whose key of four bytes is padded with zeros by HMAC itself.
    #[test]
    fn the_digest_equals_the_standard_s_examples() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let digest = keyed(&Key(key), "what do ya want ", b"for nothing?");
        assert_eq!(digest.to_string(), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}

//! Hides the digests of served events in ledger lines. With a plain digest, anybody with the ledger could confirm a guessed event,
//! also after an erasure. The key is the team's salt of 1970-01.

use aes::Aes256;
use aes::cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};

use crate::model::Digest;

use super::ArchiveError;
use super::salts::{Salt, Salts};

const DIGEST_DOMAIN: &str = "annals billing entry v1\n";
const ORIGINAL_DOMAIN: &str = "annals served text v1\n";
const ANCHOR_DOMAIN: &str = "annals walk anchor v1\n";

/// A team's key for digests of served events.
#[derive(Debug, Clone, Copy)]
pub struct EventKey(pub(super) Salt);

impl Salts {
    /// # Errors
    /// When the salt that is the key is lost.
    pub fn event_key(&self) -> Result<EventKey, ArchiveError> {
        self.key().map(EventKey)
    }

    /// Maps the digest of a served text to the identity of the event after an erasure.
    pub fn originals(&self) -> Result<impl Fn(&Digest) -> Digest + use<>, ArchiveError> {
        let key = self.event_key()?;
        Ok(move |digest: &Digest| key.original(digest))
    }
}

impl EventKey {
    /// The keyed digest of an event's digest. Equal events have equal keyed digests.
    pub fn digest(&self, digest: &Digest) -> Digest {
        self.0.keyed(DIGEST_DOMAIN, &digest.0)
    }

    /// The identity of an erased event: a keyed digest of the digest of its served text.
    pub(super) fn original(&self, digest: &Digest) -> Digest {
        self.0.keyed(ORIGINAL_DOMAIN, &digest.0)
    }

    /// Encrypts an anchor of a walk: it is one block of AES-256. The same anchor always gives the same bytes.
    pub fn encrypt(&self, anchor: [u8; 16]) -> [u8; 16] {
        let mut block = anchor.into();
        self.cipher().encrypt_block(&mut block);
        block.into()
    }

    pub fn decrypt(&self, hidden: [u8; 16]) -> [u8; 16] {
        let mut block = hidden.into();
        self.cipher().decrypt_block(&mut block);
        block.into()
    }

    fn cipher(&self) -> Aes256 {
        Aes256::new(&self.0.keyed(ANCHOR_DOMAIN, &[]).0.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_encrypted_anchor_can_be_decrypted(anchor: [u8; 16], key: [u8; 32], other: [u8; 32]) {
            let (own, stranger) = (EventKey(Salt(key)), EventKey(Salt(other)));
            let hidden = own.encrypt(anchor);
            prop_assert_eq!(own.decrypt(hidden), anchor);
            prop_assert_eq!(own.encrypt(anchor), hidden);
            prop_assert_ne!(hidden, anchor);
            prop_assert_eq!(stranger.decrypt(hidden) == anchor, key == other);
        }
    }

    #[test]
    fn a_keyed_digest_differs_from_the_digest_and_depends_on_the_key() {
        let digest = Digest::of(b"a served text");
        let [one, other] = [1, 2].map(|byte| EventKey(Salt([byte; 32])).digest(&digest));
        assert!(one != digest && one != other && one == EventKey(Salt([1; 32])).digest(&digest));
    }
}

//! Hides the digests of served events in ledger lines. A plain digest would let anybody with the ledger confirm a guessed event,
//! also after an erasure. The key is the team's salt of 1970-01.

use crate::model::Digest;

use super::ArchiveError;
use super::erase::{Key, key_of, keyed};
use super::salts::Salts;

const DIGEST_DOMAIN: &str = "annals billing entry v1\n";
const ANCHOR_DOMAIN: &str = "annals walk anchor v1\n";
/// Four rounds of a Feistel network with a keyed digest are a keyed permutation (Luby and Rackoff).
const ROUNDS: u8 = 4;

/// A team's key for digests of served events.
#[derive(Debug, Clone, Copy)]
pub struct EventMask(Key);

impl Salts {
    /// The mask of this team.
    ///
    /// # Errors
    /// When the salt that is the key is lost.
    pub fn event_mask(&self) -> Result<EventMask, ArchiveError> {
        key_of(self).map(EventMask)
    }
}

impl EventMask {
    /// The keyed digest of an event's digest. Equal events have equal keyed digests.
    pub fn digest(&self, digest: &Digest) -> Digest {
        keyed(&self.0, DIGEST_DOMAIN, &digest.0)
    }

    /// Encrypts an anchor of a walk. The same anchor always gives the same bytes.
    pub fn hide(&self, anchor: [u8; 16]) -> [u8; 16] {
        let (left, right) =
            (0..ROUNDS).fold(halves(anchor), |(left, right), round| (right, left ^ self.round(round, right)));
        joined(left, right)
    }

    /// Decrypts an anchor.
    pub fn show(&self, hidden: [u8; 16]) -> [u8; 16] {
        let (left, right) =
            (0..ROUNDS).rev().fold(halves(hidden), |(left, right), round| (right ^ self.round(round, left), left));
        joined(left, right)
    }

    fn round(&self, round: u8, half: u64) -> u64 {
        let bytes = [&[round][..], &half.to_be_bytes()].concat();
        halves(keyed(&self.0, ANCHOR_DOMAIN, &bytes).0[..16].try_into().expect("BUG: a digest has 32 bytes")).0
    }
}

fn halves(bytes: [u8; 16]) -> (u64, u64) {
    let both = u128::from_be_bytes(bytes);
    let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).expect("BUG: 64 bits");
    (half(both >> 64), half(both))
}

fn joined(left: u64, right: u64) -> [u8; 16] {
    (u128::from(left) << 64 | u128::from(right)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_anchor_is_hidden_and_shown_again(anchor: [u8; 16], key: [u8; 32], other: [u8; 32]) {
            let (mask, stranger) = (EventMask(Key(key)), EventMask(Key(other)));
            let hidden = mask.hide(anchor);
            prop_assert_eq!(mask.show(hidden), anchor);
            prop_assert_eq!(mask.hide(anchor), hidden);
            prop_assert_ne!(hidden, anchor);
            prop_assert_eq!(stranger.show(hidden) == anchor, key == other);
        }
    }

    #[test]
    fn a_digest_is_not_itself_and_depends_on_the_key() {
        let digest = Digest::of(b"a served text");
        let [one, other] = [1, 2].map(|byte| EventMask(Key([byte; 32])).digest(&digest));
        assert!(one != digest && one != other && one == EventMask(Key([1; 32])).digest(&digest));
    }
}

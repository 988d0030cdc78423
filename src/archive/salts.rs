//! The salts of a team: 32 random bytes for each calendar month. The digest of each row includes its month's salt, so no digest
//! in the ledger confirms a guess of a row's content.
//!
//! A line names a salt by month and file digest, at the latest in the line that first needs it. So two writers cannot create two
//! salts of one month: the conditional append refuses one line, and its writer reads the ledger again. No reader uses a salt
//! file that no line names. A conditional write of one file a month would also work, but a local disk could leave torn files
//! that look like damage.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::model::path::{ArchivePath, ledger_of, month_of};
use crate::model::{Digest, Instant, Range, TeamId, TeamKey};
use crate::store::{Store, StoreError, Verb, put};

use super::random::{Nonce, Random};
use super::{ArchiveError, LostSalt, SaltRecord};
use crate::archive::deletion::hold::normal_subject;
use crate::archive::ledger::state::TeamState;

/// The salt of this month is the key of draft digests, and no line replaces it.
pub const DRAFTS_MONTH: Instant = Instant::from_nanos(0);

const DOMAIN: &str = "annals salt v1\n";
/// The prefix of a subject's text.
pub const SUBJECT_DOMAIN: &str = "annals subject v1\n";
/// A salt's file has about 200 bytes, plus the ids of archive and team.
const FILE_BYTES_MAX: u64 = 16 << 10;

/// 32 secret random bytes.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Digest", into = "Digest")]
pub struct Salt(pub [u8; 32]);

impl From<Digest> for Salt {
    fn from(digest: Digest) -> Self {
        Self(digest.0)
    }
}

impl From<Salt> for Digest {
    fn from(salt: Salt) -> Self {
        Digest(salt.0)
    }
}

impl Salt {
    /// The HMAC-SHA256 of `domain` and `bytes` under this key. Without the key, it confirms no guess.
    pub fn keyed(&self, domain: &str, bytes: &[u8]) -> Digest {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        context.update(domain.as_bytes());
        context.update(bytes);
        Digest(context.sign().as_ref().try_into().expect("BUG: HMAC-SHA256 has 32 bytes"))
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt")
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SaltFile {
    archive_id: String,
    team_id: TeamId,
    /// `2026-11`
    month: String,
    salt: Salt,
}

#[derive(Clone)]
enum MonthSalt {
    /// A line names it.
    Named(Salt),
    /// The next line will name it.
    New(Salt),
    Lost(LostSalt),
}

/// The salts of a team and the random numbers of its files, for digesting and encoding rows. Clones share them.
#[derive(Clone)]
pub struct Salts {
    archive_id: String,
    team: TeamId,
    random: Random,
    /// The source of new salts, so that their order does not matter. `None` for verifiers, which create no salt.
    seed: Option<Salt>,
    months: Arc<Mutex<BTreeMap<Instant, MonthSalt>>>,
}

impl Salts {
    /// The salts of a writer, which creates missing ones.
    ///
    /// # Errors
    /// When the store fails. A lost salt is an error only when somebody asks for it.
    pub fn for_writing(store: &dyn Store, state: &TeamState, random: &Random) -> Result<Self, StoreError> {
        let read = |salt: SaltRecord| Ok((salt.month, read(store, state, salt)?));
        let months = state.named_salts().map(read).collect::<Result<_, StoreError>>()?;
        Ok(Self::with(state, random.clone(), Some(Salt(random.seed())), months))
    }

    /// The salts that the ledger names, for verification. An unreadable salt is lost.
    pub fn for_verifying(store: &dyn Store, state: &TeamState) -> Self {
        let read = |salt: SaltRecord| {
            let lost = |error: StoreError| MonthSalt::Lost(salt.lost(state, error.to_string()));
            (salt.month, read(store, state, salt).unwrap_or_else(lost))
        };
        Self::with(state, Random::default(), None, state.named_salts().map(read).collect())
    }

    fn with(state: &TeamState, random: Random, seed: Option<Salt>, months: BTreeMap<Instant, MonthSalt>) -> Self {
        let (archive_id, team) = (state.archive_id.clone(), state.team_id.clone());
        Self { archive_id, team, random, seed, months: Arc::new(Mutex::new(months)) }
    }

    pub fn team(&self) -> &TeamId {
        &self.team
    }

    /// The random number of a file.
    pub fn nonce(&self) -> Nonce {
        self.random.nonce()
    }

    /// The month of `at`, and its salt.
    ///
    /// # Errors
    /// When the ledger names the month's salt, but its file is missing or differs.
    pub fn of(&self, at: Instant) -> Result<(Range, Salt), LostSalt> {
        let month = month_of(at);
        let mut months = self.months.lock();
        let held = months.entry(month.start).or_insert_with(|| match &self.seed {
            Some(seed) => MonthSalt::New(self.make(seed, month.start)),
            None => {
                let path = ledger_of(&TeamKey::of(&self.team));
                let reason = "no line names a salt".to_owned();
                MonthSalt::Lost(LostSalt { month: month.start.month(), path, reason })
            }
        });
        match held {
            MonthSalt::Named(salt) | MonthSalt::New(salt) => Ok((month, *salt)),
            MonthSalt::Lost(lost) => Err(lost.clone()),
        }
    }

    /// The team's key for digests of drafts, events and subjects. No order of erasure replaces it.
    ///
    /// # Errors
    /// When the key is lost.
    pub(super) fn key(&self) -> Result<Salt, ArchiveError> {
        Ok(self.of(DRAFTS_MONTH)?.1)
    }

    /// The keyed digest of a subject of holds and erasures. Without the team's key, the digest confirms no guess.
    ///
    /// # Errors
    /// When the key is lost.
    pub fn subject(&self, subject: &str) -> Result<Digest, ArchiveError> {
        Ok(self.key()?.keyed(SUBJECT_DOMAIN, normal_subject(subject).as_bytes()))
    }

    fn make(&self, seed: &Salt, month: Instant) -> Salt {
        Salt(Digest::with_domain(DOMAIN, &[&seed.0, month.month().as_bytes()]).0)
    }

    /// The lost salts among those that were named or asked for.
    pub fn lost(&self) -> Vec<LostSalt> {
        let lost = |held: &MonthSalt| match held {
            MonthSalt::Lost(lost) => Some(lost.clone()),
            _ => None,
        };
        self.months.lock().values().filter_map(lost).collect()
    }

    /// Writes the salts that no line names yet, reads them back, and returns their records for the next line.
    ///
    /// # Errors
    /// When the store fails, or reads back other content.
    pub fn write_new(&self, store: &dyn Store) -> Result<Vec<SaltRecord>, ArchiveError> {
        let new = |(month, held): (&Instant, &MonthSalt)| match held {
            MonthSalt::New(salt) => Some((*month, *salt)),
            _ => None,
        };
        let new: Vec<(Instant, Salt)> = self.months.lock().iter().filter_map(new).collect();
        let write = |(month, salt): (Instant, Salt)| {
            let bytes = self.file(month, salt);
            let record = SaltRecord { month, sha256: Digest::of(&bytes) };
            let path = record.path(&TeamKey::of(&self.team));
            put(store, &path, &bytes)?;
            let found = store.read(&path)?.digest().map_err(|e| StoreError::io(Verb::Read, &path, e))?;
            match found == record.sha256 {
                true => Ok(record),
                false => {
                    let (found, expected) = (found.to_string(), record.sha256.to_string());
                    Err(ArchiveError::ReadBack { path, found, expected })
                }
            }
        };
        new.into_iter().map(write).collect()
    }

    /// These salts with new ones for `months`. The next line names them instead of the old ones.
    #[must_use]
    pub fn replacing(&self, months: &BTreeSet<Instant>) -> Self {
        // A seed of its own: the seed of this writer would make the same salts again.
        let seed = Salt(self.random.seed());
        let mut held = self.months.lock().clone();
        for month in months.iter().filter(|month| **month != DRAFTS_MONTH) {
            held.insert(*month, MonthSalt::New(self.make(&seed, *month)));
        }
        Self { months: Arc::new(Mutex::new(held)), ..self.clone() }
    }

    pub fn mark_named(&self, records: &[SaltRecord]) {
        let mut months = self.months.lock();
        for record in records {
            if let Some(held) = months.get_mut(&record.month)
                && let MonthSalt::New(salt) = *held
            {
                *held = MonthSalt::Named(salt);
            }
        }
    }

    fn file(&self, month: Instant, salt: Salt) -> Vec<u8> {
        let file =
            SaltFile { archive_id: self.archive_id.clone(), team_id: self.team.clone(), month: month.month(), salt };
        let mut bytes = serde_json::to_vec(&file).expect("BUG: a salt's file has no map with odd keys");
        bytes.push(b'\n');
        bytes
    }
}

impl SaltRecord {
    pub fn path(&self, team: &TeamKey) -> String {
        ArchivePath::Salt { team: team.clone(), month: self.month, hash: self.sha256.short() }.to_string()
    }

    fn lost(&self, state: &TeamState, reason: String) -> LostSalt {
        LostSalt { month: self.month.month(), path: self.path(&TeamKey::of(&state.team_id)), reason }
    }
}

/// The salt that a line names; a lost salt says why.
fn read(store: &dyn Store, state: &TeamState, record: SaltRecord) -> Result<MonthSalt, StoreError> {
    let lost = |reason: String| Ok(MonthSalt::Lost(record.lost(state, reason)));
    let path = record.path(&TeamKey::of(&state.team_id));
    let blob = match store.read(&path) {
        Ok(blob) => blob,
        Err(StoreError::NotFound { .. }) => return lost("not there".to_owned()),
        Err(StoreError::Irregular { what, .. }) => return lost(what),
        Err(other) => return Err(other),
    };
    if blob.size() > FILE_BYTES_MAX {
        return lost(format!("the file has {} bytes, so Annals did not write it", blob.size()));
    }
    let bytes = blob.to_bytes().map_err(|e| StoreError::io(Verb::Read, &path, e))?;
    let found = Digest::of(&bytes);
    if found != record.sha256 {
        return lost(format!("the file has digest {found}, but the ledger says {}", record.sha256));
    }
    let file: SaltFile = match serde_json::from_slice(&bytes) {
        Ok(file) => file,
        Err(e) => return lost(format!("no salt: {e}")),
    };
    if (&file.archive_id, &file.team_id, &file.month) != (&state.archive_id, &state.team_id, &record.month.month()) {
        return lost(format!(
            "the file holds the salt of {} of team {} of archive {}",
            file.month, file.team_id, file.archive_id
        ));
    }
    Ok(MonthSalt::Named(file.salt))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second case of RFC 4231, whose key of four bytes is padded with zeros by HMAC itself.
    #[test]
    fn the_digest_is_that_of_the_standard() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let digest = Salt(key).keyed("what do ya want ", b"for nothing?");
        assert_eq!(digest.to_string(), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}

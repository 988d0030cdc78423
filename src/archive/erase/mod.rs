//! Erasure: every value of a subject is replaced, in every row, by a pseudonym that nobody can reckon back.
//!
//! 1. The order and a random key are kept in a scratch file, until the order is carried out. So an order that was killed goes on with
//!    the same pseudonyms, and later nobody has the key.
//! 2. Of each team the files with rows of the subject are written anew, and one ledger line puts them in the place of the old.
//!    Its sums say that nothing else changed.
//! 3. The old files, and all others that no line names, are removed at once.
//!
//! Given again, the order goes on with whatever is not done: what is done already holds no row of the subject.

mod carry;
mod eraser;
mod held;
mod keyed;
mod order;
mod place;
mod record;
mod rules;
mod scan;
mod strings;
mod subject;

pub use carry::Erasure;
pub use order::{Order, PendingOrder};
pub(super) use place::is_order;
pub use record::{ErasedPart, ErasedRecord, check_order};
pub use scan::FoundRow;
pub use subject::Subject;

use crate::model::{Digest, TeamId};

use super::ArchiveError;
use super::salts::Salts;
use keyed::{Key, keyed};

/// What an erased event is known by: a keyed digest of the digest of its text as it was served.
fn original_as(team_key: &Key, digest: &Digest) -> Digest {
    keyed(team_key, "annals served text v1\n", &digest.0)
}

/// The key of a team, which no order replaces.
fn key_of(salts: &Salts) -> Result<Key, ArchiveError> {
    let key = salts.of_drafts().map_err(|lost| bad(salts.team(), lost.to_string()))?;
    Ok(Key(key.0))
}

fn bad(team: &TeamId, reason: String) -> ArchiveError {
    ArchiveError::Draft { team: team.clone(), reason }
}

impl Salts {
    /// What an event is known by after an erasure, by the digest of its text as it is served.
    ///
    /// # Errors
    /// When the salt is lost that keys it.
    pub fn originals(&self) -> Result<impl Fn(&Digest) -> Digest + use<>, ArchiveError> {
        let key = key_of(self)?;
        Ok(move |digest: &Digest| original_as(&key, digest))
    }
}

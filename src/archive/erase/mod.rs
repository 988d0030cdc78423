//! Erasure: an order replaces every value of a subject, in every row, by a pseudonym. Nobody can compute the value from it.
//!
//! 1. A scratch file keeps the order and its random key until the order is done. So an interrupted order continues with the same
//!    pseudonyms, and afterwards nobody has the key.
//! 2. For each team, the writer writes the files that hold the subject again. One ledger line replaces the old files by the new
//!    ones; its sums prove that nothing else changed.
//! 3. The writer removes the old files at once, together with all other files that no line names.
//!
//! An order that is given again continues with the remaining teams: a finished team holds no row of the subject.

mod carry;
mod eraser;
mod held;
mod order;
mod place;
mod record;
mod rules;
mod scan;
mod strings;
mod subject;
mod unlink;

pub use carry::Erasure;
pub use order::{Order, PendingOrder};
pub(super) use place::is_order;
pub use record::{ErasedPart, ErasedRecord, ResaltedFile, check_order};
pub use scan::FoundRow;
pub use subject::Subject;

use crate::model::{Digest, TeamId};

use super::ArchiveError;
use super::salts::{Salt, Salts};

/// The identity of an erased event: a keyed digest of the digest of its served text.
fn original_as(team_key: &Salt, digest: &Digest) -> Digest {
    team_key.keyed("annals served text v1\n", &digest.0)
}

/// The key of a team. No order replaces it.
pub(super) fn key_of(salts: &Salts) -> Result<Salt, ArchiveError> {
    salts.of_drafts().map_err(|lost| bad(salts.team(), lost.to_string()))
}

fn bad(team: &TeamId, reason: String) -> ArchiveError {
    ArchiveError::Draft { team: team.clone(), reason }
}

impl Salts {
    /// Maps the digest of a served text to the identity of the event after an erasure.
    ///
    /// # Errors
    /// When the salt that is the key is lost.
    pub fn originals(&self) -> Result<impl Fn(&Digest) -> Digest + use<>, ArchiveError> {
        let key = key_of(self)?;
        Ok(move |digest: &Digest| original_as(&key, digest))
    }
}

//! The holds that apply to a team: those of its own ledger, and those of other ledgers that cover the whole archive.

use super::hold::Hold;
use crate::archive::ledger::state::TeamState;
use crate::archive::salts::{Salt, Salts};
use crate::archive::{Archive, ArchiveError, HoldScope, TeamReader};

/// The active holds that apply to the team of `state`, one per id. `archive_wide` comes from [`Archive::archive_holds`]. An interrupted
/// release leaves a hold active in some ledgers; then the hold still applies.
pub fn active_holds(state: &TeamState, archive_wide: &[Hold]) -> Vec<Hold> {
    let mut found: Vec<Hold> = state.holds.values().filter(|hold| hold.is_active()).cloned().collect();
    archive_wide.iter().for_each(|hold| add(&mut found, hold));
    found
}

fn add(holds: &mut Vec<Hold>, hold: &Hold) {
    if !holds.iter().any(|held| held.added.id == hold.added.id) {
        holds.push(hold.clone());
    }
}

impl Archive {
    /// The active holds of the whole archive from the ledgers of all teams, one per id. They also apply to teams that are
    /// added later.
    pub fn archive_holds(&self) -> Result<Vec<Hold>, ArchiveError> {
        let mut found: Vec<Hold> = Vec::new();
        self.read_each(&|_| true, |reader| {
            archive_wide(reader.state()).for_each(|hold| add(&mut found, hold));
        })?;
        Ok(found)
    }

    /// The active holds that apply to an order in the team of `own`, and the keys of other ledgers' digests of subjects: each ledger
    /// has its own key.
    ///
    /// # Errors
    /// As [`Archive::archive_holds`], and when such a key is lost.
    pub(in crate::archive) fn holds_for(&self, own: &TeamReader) -> Result<(Vec<Hold>, Vec<Salt>), ArchiveError> {
        let (mut holds, mut keys) = (active_holds(own.state(), &[]), Vec::new());
        for other in self.teams()?.iter().filter(|other| **other != own.state().team_id) {
            let (reader, known) = (self.read(other)?, holds.len());
            archive_wide(reader.state()).for_each(|hold| add(&mut holds, hold));
            if holds[known..].iter().any(|hold| hold.added.subject.is_some()) {
                keys.push(reader.salts().key()?);
            }
        }
        Ok((holds, keys))
    }
}

impl TeamReader {
    /// The salts that the ledger names, for digests of subjects.
    pub fn salts(&self) -> Salts {
        Salts::for_verifying(self.store(), self.state())
    }
}

fn archive_wide(state: &TeamState) -> impl Iterator<Item = &Hold> {
    state.holds.values().filter(|hold| hold.is_active() && hold.added.scope == HoldScope::All)
}

//! The holds that apply to a team: those of its own ledger, and those of other ledgers that cover the whole archive.

use super::hold::Hold;
use super::salts::Salts;
use super::state::TeamState;
use super::{Archive, ArchiveError, HoldAdded, HoldScope, Subject, TeamReader};

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
    ///
    /// # Errors
    /// When the store fails, or a ledger is damaged.
    pub fn archive_holds(&self) -> Result<Vec<Hold>, ArchiveError> {
        let mut found: Vec<Hold> = Vec::new();
        self.read_each(&|_| true, |reader| {
            archive_wide(reader.state()).for_each(|hold| add(&mut found, hold));
        })?;
        Ok(found)
    }

    /// The active holds that apply to an order in the team of `own`. The holds on the order's subject get the subject's digest under
    /// that team's key.
    ///
    /// # Errors
    /// As [`Archive::archive_holds`], and when the key of a subject's digest is lost.
    pub(super) fn holds_for(&self, own: &TeamReader, subject: &Subject) -> Result<Vec<Hold>, ArchiveError> {
        let digests = |reader: &TeamReader| Ok::<_, ArchiveError>(subject.digests(&reader.salts().key()?));
        let mut foreign: Vec<Hold> = Vec::new();
        for other in self.teams()?.iter().filter(|other| **other != own.state().team_id) {
            let reader = self.read(other)?;
            for hold in archive_wide(reader.state()) {
                // Each ledger has its own key.
                let of_subject = match hold.added.subject {
                    Some(held) if digests(&reader)?.contains(&held) => digests(own)?.first().copied(),
                    Some(_) => continue,
                    None => None,
                };
                foreign.push(Hold { added: HoldAdded { subject: of_subject, ..hold.added.clone() }, ..hold.clone() });
            }
        }
        Ok(active_holds(own.state(), &foreign))
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

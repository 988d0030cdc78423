//! The holds that apply to a team: those of its own ledger, and those of other ledgers that cover the whole archive.

use crate::model::{Digest, TeamId};
use crate::store::Store;

use super::hold::Hold;
use super::salts::Salts;
use super::state::TeamState;
use super::{Archive, ArchiveError, HoldScope, TeamReader};

/// The active holds that apply to the team of `state`, one per id. `whole` comes from [`Archive::whole_holds`]. An interrupted
/// release leaves a hold active in some ledgers; then the hold still applies.
pub fn reaching(state: &TeamState, whole: &[Hold]) -> Vec<Hold> {
    let mut found: Vec<Hold> = state.holds.values().filter(|hold| hold.stands()).cloned().collect();
    for hold in whole {
        if !found.iter().any(|held| held.added.id == hold.added.id) {
            found.push(hold.clone());
        }
    }
    found
}

impl Archive {
    /// The active holds of the whole archive from the ledgers of all teams, one per id. They also apply to teams that are
    /// added later.
    ///
    /// # Errors
    /// When the store fails, or a ledger is damaged.
    pub fn whole_holds(&self) -> Result<Vec<Hold>, ArchiveError> {
        let mut found: Vec<Hold> = Vec::new();
        self.read_each(&|_| true, |reader| {
            for hold in whole(reader.state()) {
                if !found.iter().any(|held| held.added.id == hold.added.id) {
                    found.push(hold.clone());
                }
            }
        })?;
        Ok(found)
    }

    /// The active holds that apply to a team, without holds on other subjects. Subject digests use the team's own key.
    ///
    /// # Errors
    /// As [`Archive::whole_holds`], and when the key of a subject's digest is lost.
    pub fn holds_on(&self, team: &TeamId, subject: &str) -> Result<Vec<Hold>, ArchiveError> {
        let own = self.read(team)?;
        let mut foreign: Vec<Hold> = Vec::new();
        let mut digest = None;
        for other in self.teams()?.iter().filter(|other| *other != team) {
            let reader = self.read(other)?;
            for hold in whole(reader.state()) {
                // Each ledger has its own key.
                let Some(theirs) = hold.added.subject else {
                    foreign.push(hold.clone());
                    continue;
                };
                if subject_of(self.store().as_ref(), reader.state(), subject)? == theirs {
                    let own = subject_of(self.store().as_ref(), own.state(), subject)?;
                    let mut hold = hold.clone();
                    hold.added.subject = Some(own);
                    digest = Some(own);
                    foreign.push(hold);
                }
            }
        }
        let mut found = reaching(own.state(), &foreign);
        if found.iter().any(|hold| hold.added.subject.is_some()) {
            let digest = digest.map_or_else(|| subject_of(self.store().as_ref(), own.state(), subject), Ok)?;
            found.retain(|hold| hold.added.subject.is_none_or(|held| held == digest));
        }
        Ok(found)
    }
}

impl TeamReader {
    /// The keyed digest of a subject for this team's holds.
    ///
    /// # Errors
    /// When the key is lost.
    pub fn subject(&self, subject: &str) -> Result<Digest, ArchiveError> {
        subject_of(self.store(), self.state(), subject)
    }
}

/// The keyed digest of a subject under the key of the team of `state`.
fn subject_of(store: &dyn Store, state: &TeamState, subject: &str) -> Result<Digest, ArchiveError> {
    let refused = |reason: String| ArchiveError::Draft { team: state.team_id.clone(), reason };
    Salts::of_verifier(store, state).subject(subject).map_err(|lost| refused(lost.to_string()))
}

fn whole(state: &TeamState) -> impl Iterator<Item = &Hold> {
    state.holds.values().filter(|hold| hold.stands() && hold.added.scope == HoldScope::All)
}

//! The holds that reach a team: its own, and those of other ledgers that are of the whole archive.

use crate::model::{Digest, TeamId};

use super::hold::Hold;
use super::salts::Salts;
use super::state::TeamState;
use super::store::Store;
use super::{Archive, ArchiveError, HoldScope, TeamReader};

/// The holds that stand and reach the team of `state`, one of each id. `whole`: those of [`Archive::whole_holds`]. A release
/// that was interrupted leaves a hold in some ledgers: it stands.
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
    /// The holds that stand and are of the whole archive, by the ledgers of all teams; one of each id. They reach teams
    /// that came later as well.
    ///
    /// # Errors
    /// When the store fails, or a ledger does not check.
    pub fn whole_holds(&self) -> Result<Vec<Hold>, ArchiveError> {
        let mut found: Vec<Hold> = Vec::new();
        self.read_each(&self.teams()?, |reader| {
            for hold in whole(reader.state()) {
                if !found.iter().any(|held| held.added.id == hold.added.id) {
                    found.push(hold.clone());
                }
            }
        })?;
        Ok(found)
    }

    /// The holds that stand and reach a team, without those about another subject. A digest of a subject is the team's own.
    ///
    /// # Errors
    /// As [`Archive::whole_holds`], and when a salt is lost that tells a subject.
    pub fn holds_on(&self, team: &TeamId, subject: &str) -> Result<Vec<Hold>, ArchiveError> {
        let own = self.read(team)?;
        let mut foreign: Vec<Hold> = Vec::new();
        let mut digest = None;
        for other in self.teams()?.iter().filter(|other| *other != team) {
            let reader = self.read(other)?;
            for hold in whole(reader.state()) {
                // Each ledger has a key of its own.
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
    /// The keyed digest of a subject, as holds of this team have it.
    ///
    /// # Errors
    /// When the key is lost.
    pub fn subject(&self, subject: &str) -> Result<Digest, ArchiveError> {
        subject_of(self.store(), self.state(), subject)
    }
}

/// The keyed digest of a subject, by the key of the team of `state`.
///
/// # Errors
/// When the key is lost.
fn subject_of(store: &dyn Store, state: &TeamState, subject: &str) -> Result<Digest, ArchiveError> {
    let refused = |reason: String| ArchiveError::Draft { team: state.team_id.clone(), reason };
    Salts::of_verifier(store, state).subject(subject).map_err(|lost| refused(lost.to_string()))
}

fn whole(state: &TeamState) -> impl Iterator<Item = &Hold> {
    state.holds.values().filter(|hold| hold.stands() && hold.added.scope == HoldScope::All)
}

//! States and salts for tests of the rules, without a store.

use crate::store::MemoryStore;
use std::sync::Arc;

use super::super::random::Random;
use super::super::{Body, Salts, StateError, TeamState};
use crate::model::TeamId;

impl TeamState {
    /// The state after `body` as the next line, or the broken rule. Leaves the members of the chain unchanged.
    pub fn try_advance(&self, body: Body) -> Result<Self, StateError> {
        self.check(&body)?;
        let mut next = self.clone();
        next.apply(body, self.seq.next());
        Ok(next)
    }
}

impl Salts {
    /// Salts of an archive before its first line, whose random source returns only sevens.
    pub fn of_test(team: TeamId) -> Self {
        let random = Random::new(Arc::new(|| 7));
        Self::for_writing(&MemoryStore::new(), &TeamState::genesis("archive-1", team), &random).unwrap()
    }
}

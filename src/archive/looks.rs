//! The looks at a team's people and computers, as the ledger tells them.

use std::collections::BTreeMap;

use crate::model::{Instant, InventoryPart};

use super::rules::StateError;
use super::state::TeamState;
use super::{Body, InventoryRead};

impl TeamState {
    /// The last look at a part of the inventory.
    pub fn last_look(&self, part: InventoryPart) -> Option<&InventoryRead> {
        self.inventory.get(&part)?.last()
    }

    /// The looks at one part never run backwards.
    pub(super) fn check_looks(&self, body: &Body) -> Result<(), StateError> {
        let mut last: BTreeMap<InventoryPart, Instant> = BTreeMap::new();
        for look in &body.inventory {
            let held = self.last_look(look.part).map(|held| held.read_at);
            let before = last.insert(look.part, look.read_at).or(held);
            if let Some(from) = before.filter(|from| look.read_at <= *from) {
                return Err(StateError::LookBack { part: look.part, from, to: look.read_at });
            }
        }
        Ok(())
    }
}

//! The scans of a team's people and computers that the ledger records.

use std::collections::BTreeMap;

use crate::model::{Instant, InventoryPart};

use super::rules::StateError;
use super::state::TeamState;
use super::{Body, InventoryRead};

impl TeamState {
    /// The last read of a part of the inventory.
    pub fn last_scan(&self, part: InventoryPart) -> Option<&InventoryRead> {
        self.inventory.get(&part)?.last()
    }

    /// Checks that the times of one part's reads increase.
    pub(super) fn check_inventory_scans(&self, body: &Body) -> Result<(), StateError> {
        let mut last: BTreeMap<InventoryPart, Instant> = BTreeMap::new();
        for scan in &body.inventory {
            let held = self.last_scan(scan.part).map(|held| held.read_at);
            let before = last.insert(scan.part, scan.read_at).or(held);
            if let Some(from) = before.filter(|from| scan.read_at <= *from) {
                return Err(StateError::ScanBackwards { part: scan.part, from, to: scan.read_at });
            }
        }
        Ok(())
    }
}

//! A team's name, from the newest read of the team. Each month repeats it, so one small file is enough.

use crate::model::{Dataset, InventoryPart, InventoryValue};
use crate::store::Store;

use super::table::{Selection, TableReader, inventory_rows};
use super::{ArchiveError, FileEntry};
use crate::archive::ledger::state::TeamState;

const PART: InventoryPart = InventoryPart::Team;

impl TeamState {
    /// The file that holds the team's name; `None` until Annals has read it. A changed name is in another file.
    pub fn name_file(&self) -> Option<&FileEntry> {
        self.files_of(Dataset::Inventory(PART)).max_by_key(|file| (file.last, &file.path))
    }
}

/// The name in a [`TeamState::name_file`], as the service showed it; `None` if the team has none.
pub fn team_name(store: &dyn Store, path: &str) -> Result<Option<String>, ArchiveError> {
    let column = PART.columns().iter().position(|column| column.name == "name").expect("BUG: a team has a name");
    let reader = TableReader::open(store, path, Dataset::Inventory(PART), Selection::default())?;
    let newest = reader.rows(|batch| inventory_rows(PART, batch))?.into_iter().max_by_key(|row| row.seen_at);
    let name = newest.filter(|row| row.present).map(|mut row| row.values.swap_remove(column));
    Ok(match name {
        Some(InventoryValue::Text(name)) => Some(name),
        _ => None,
    })
}

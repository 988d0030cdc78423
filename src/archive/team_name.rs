//! A team's name, from the newest read of the team. Each month repeats it, so one small file is enough.

use crate::model::{Dataset, InventoryPart, InventoryValue};
use crate::store::Store;

use super::reader::bad;
use super::state::TeamState;
use super::table::{Selection, TableReader, inventory_rows};
use super::{ArchiveError, FileEntry};

const PART: InventoryPart = InventoryPart::Team;

impl TeamState {
    /// The file that holds the team's name; `None` before the first read. A changed name is in another file.
    pub fn name_file(&self) -> Option<&FileEntry> {
        self.files_of(Dataset::Inventory(PART)).max_by_key(|file| (file.last, &file.path))
    }
}

/// The name in a [`TeamState::name_file`], as the service showed it; `None` if the team has none.
///
/// # Errors
/// When the file cannot be read.
pub fn team_name(store: &dyn Store, path: &str) -> Result<Option<String>, ArchiveError> {
    let column = PART.columns().iter().position(|column| column.name == "name").expect("BUG: a team has a name");
    let mut newest: Option<(i64, Option<String>)> = None;
    for batch in TableReader::open(store, path, Dataset::Inventory(PART), Selection::default())? {
        for row in inventory_rows(PART, &batch?).map_err(|detail| bad(path, detail))? {
            if newest.as_ref().is_none_or(|(seen_at, _)| *seen_at <= row.seen_at) {
                let name = match &row.values[column] {
                    InventoryValue::Text(name) if row.present => Some(name.clone()),
                    _ => None,
                };
                newest = Some((row.seen_at, name));
            }
        }
    }
    Ok(newest.and_then(|(_, name)| name))
}

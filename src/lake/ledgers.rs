//! The ends of all ledgers at the time of a publication, and the files that are live there.

use std::collections::BTreeMap;

use crate::archive::{Archive, FileEntry, LinesFile, TeamHead, TeamReader};
use crate::model::Dataset;

use super::LakeError;
use super::ledger_tables::LedgerRows;

/// The state of each team's ledger at one moment.
#[derive(Debug)]
pub struct Ledgers {
    pub lines: LinesFile,
    files: BTreeMap<Dataset, BTreeMap<String, FileEntry>>,
    pub ledger_rows: LedgerRows,
}

impl Ledgers {
    /// Collects the rows of the ledger tables only if `with_ledger_tables`.
    ///
    /// # Errors
    /// When the store fails, or a ledger is invalid.
    pub fn read(archive: &Archive, with_ledger_tables: bool) -> Result<Self, LakeError> {
        let lines = LinesFile { archive_id: archive.id().to_owned(), teams: Vec::new() };
        let mut found = Self { lines, files: BTreeMap::new(), ledger_rows: LedgerRows::default() };
        archive.read_each(&|_| true, |reader| found.add(&reader, with_ledger_tables))?;
        Ok(found)
    }

    fn add(&mut self, reader: &TeamReader, with_ledger_tables: bool) {
        let state = reader.state();
        self.lines.teams.push(TeamHead { team_id: state.team_id.clone(), seq: state.seq, head: state.head });
        if with_ledger_tables {
            self.ledger_rows.add(state);
        }
        for file in state.files.values() {
            self.files.entry(file.dataset).or_default().insert(file.path.clone(), file.clone());
        }
    }

    /// The live files of a dataset, by path.
    pub fn files(&self, dataset: Dataset) -> BTreeMap<&str, &FileEntry> {
        self.files.get(&dataset).into_iter().flatten().map(|(path, file)| (path.as_str(), file)).collect()
    }
}

//! The ends of all ledgers at the time of a publication, and the files that are live there.

use std::collections::BTreeMap;

use crate::archive::{Archive, FileEntry, LinesFile, TeamLine, TeamReader};
use crate::model::Dataset;

use super::LakeError;
use super::ledger_tables::LedgerRows;

/// The state of each team's ledger at one moment.
#[derive(Debug)]
pub struct Ledgers {
    pub lines: LinesFile,
    files: BTreeMap<Dataset, BTreeMap<String, FileEntry>>,
    pub whole: LedgerRows,
}

impl Ledgers {
    /// Collects the rows of the ledger tables only if `has_whole`.
    ///
    /// # Errors
    /// When the store fails, or a ledger is invalid.
    pub fn read(archive: &Archive, has_whole: bool) -> Result<Self, LakeError> {
        let lines = LinesFile { archive_id: archive.id().to_owned(), teams: Vec::new() };
        let mut found = Self { lines, files: BTreeMap::new(), whole: LedgerRows::default() };
        archive.read_each(&|_| true, |reader| found.add(&reader, has_whole))?;
        Ok(found)
    }

    fn add(&mut self, reader: &TeamReader, has_whole: bool) {
        let state = reader.state();
        self.lines.teams.push(TeamLine { team_id: state.team_id.clone(), seq: state.seq, head: state.head });
        if has_whole {
            self.whole.add(state);
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

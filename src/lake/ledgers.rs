//! Where the ledgers stand: which lines a version of the tables stands for, and which files are live at these lines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::archive::{Archive, Dataset, FileEntry, TeamReader};
use crate::model::{Digest, LedgerSeq, TeamId};

use super::LakeError;
use super::whole::WholeRows;

/// A team's last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeamLine {
    pub team_id: TeamId,
    pub seq: LedgerSeq,
    /// The hash of the line.
    pub head: Digest,
}

/// The file that a snapshot's summary names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinesFile {
    pub archive_id: String,
    pub teams: Vec<TeamLine>,
}

impl LinesFile {
    /// # Errors
    /// [`LakeError::Damaged`].
    pub fn decode(path: &str, content: &[u8]) -> Result<Self, LakeError> {
        serde_json::from_slice(content).map_err(|e| LakeError::damaged(path, e))
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: texts and numbers")
    }
}

/// What the ledgers of all teams say at one moment each.
#[derive(Debug)]
pub struct Ledgers {
    pub lines: LinesFile,
    files: BTreeMap<Dataset, BTreeMap<String, FileEntry>>,
    pub whole: WholeRows,
}

impl Ledgers {
    /// The rows of the whole tables are gathered where `has_whole` says so.
    ///
    /// # Errors
    /// When the store fails, or a ledger does not check.
    pub fn read(archive: &Archive, has_whole: bool) -> Result<Self, LakeError> {
        let lines = LinesFile { archive_id: archive.id().to_owned(), teams: Vec::new() };
        let mut found = Self { lines, files: BTreeMap::new(), whole: WholeRows::default() };
        archive.read_each(&archive.teams()?, |reader| found.add(&reader, has_whole))?;
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

//! The lines of a ledger one by one, for queries about the ledger itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Digest, Instant, LedgerSeq, TeamId, TeamKey, saturating_sum};
use crate::store::Store;

use super::ledger_files::{ledger_days, ledger_path, lines_of};
use super::line::LedgerLine;
use super::text_lines::TextLines;
use crate::archive::{Archive, ArchiveError, FileEntry};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitSummary {
    pub seq: LedgerSeq,
    pub at: Instant,
    pub kind: String,
    pub files_added: u64,
    pub files_removed: u64,
    /// Rows of the added files minus rows of the removed files.
    pub rows_added: u64,
    pub sha256: Digest,
    pub prev: Digest,
}

/// A live file, and the line that added it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedFile {
    pub entry: FileEntry,
    pub added_seq: LedgerSeq,
}

/// A ledger up to one of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitHistory {
    pub lines: Vec<CommitSummary>,
    /// The files that are live after the last line, by path.
    pub files: BTreeMap<String, AddedFile>,
}

impl Archive {
    /// The lines of a team's ledger up to and including `last`.
    pub fn lines(&self, team: &TeamId, last: LedgerSeq) -> Result<CommitHistory, ArchiveError> {
        let store = self.store().as_ref();
        let key = TeamKey::of(team);
        let mut found = CommitHistory::default();
        for day in ledger_days(store, &key)? {
            found.follow_file(store, &ledger_path(&key, day), last)?;
        }
        Ok(found)
    }

    /// The newest line that adds or removes each of the files, with its time. Reads the ledger from its end, day by day, until all
    /// are found.
    ///
    /// # Errors
    /// When the store fails, or a line is too long.
    pub fn commits_of(
        &self,
        team: &TeamId,
        mut paths: BTreeSet<String>,
    ) -> Result<BTreeMap<String, (LedgerSeq, Instant)>, ArchiveError> {
        let store = self.store().as_ref();
        let key = TeamKey::of(team);
        let mut found = BTreeMap::new();
        for day in ledger_days(store, &key)?.into_iter().rev() {
            if paths.is_empty() {
                break;
            }
            let mut of_day = BTreeMap::new();
            for (line, _) in lines_of(store, &key, day)? {
                let named = line.body.adds.iter().map(|file| &file.path).chain(&line.body.removes);
                let asked = named.filter(|name| paths.contains(*name));
                of_day.extend(asked.map(|name| (name.clone(), (line.seq, line.at))));
            }
            paths.retain(|path| !of_day.contains_key(path));
            found.extend(of_day);
        }
        Ok(found)
    }
}

impl CommitHistory {
    fn follow_file(&mut self, store: &dyn Store, path: &str, last: LedgerSeq) -> Result<(), ArchiveError> {
        let mut texts = TextLines::new(path, store.read(path)?, 0);
        // Stop before a torn line: it follows the last requested line.
        while self.lines.last().is_none_or(|line| line.seq < last)
            && let Some(text) = texts.next().transpose()?
        {
            let (line, sha256) = LedgerLine::decode(&text.text).map_err(|e| texts.damaged(e.to_string()))?;
            self.follow(line, sha256);
        }
        Ok(())
    }

    fn follow(&mut self, line: LedgerLine, sha256: Digest) {
        let LedgerLine { seq, at, kind, prev, body, .. } = line;
        let removed = body.removes.iter().filter_map(|path| self.files.remove(path));
        let rows_removed = saturating_sum(removed.map(|file| file.entry.rows));
        let rows = saturating_sum(body.adds.iter().map(|file| file.rows));
        self.lines.push(CommitSummary {
            seq,
            at,
            kind,
            files_added: body.adds.len() as u64,
            files_removed: body.removes.len() as u64,
            rows_added: rows.saturating_sub(rows_removed),
            sha256,
            prev,
        });
        let added = body.adds.into_iter().map(|entry| (entry.path.clone(), AddedFile { entry, added_seq: seq }));
        self.files.extend(added);
    }
}

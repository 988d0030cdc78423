//! Copies an archive from one store to another, and continues an interrupted copy.
//!
//! For each team, the copy takes first the live files and the salts, then the ledger, line by line, as a writer appends it. Until
//! the last line is appended, `verify` misses files in the target: those that a later line replaced are never copied.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::path::{ArchivePath, lock_of, table_of};
use crate::model::{Dataset, Digest, LedgerSeq, TeamId, TeamKey, saturating_sum};
use crate::store::{Listed, Store, StoreError, Tail, Verb, get, if_there, put};

use super::checked::copy_checked;
use super::commit::recover;
use super::heads::{self, HeadLine, heads_days};
use super::ledger::Line;
use super::ledger_files::ledger_days;
use super::manifest::read_manifest;
use super::replay::{Replay, replay};
use super::text_lines::{TextLine, TextLines};
use super::{Archive, ArchiveError, FileEntry, SaltRecord, snapshot};

/// Counts what a copy wrote, for one team or all teams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    pub files: u64,
    pub bytes: u64,
    pub lines: u64,
    /// Files that the target already had.
    pub held: u64,
}

impl Copied {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            lines: self.lines + other.lines,
            held: self.held + other.held,
        }
    }
}

/// Receives each file that the target now has: its team, its bytes, and the bytes of all live files of the team.
pub type CopyProgress<'a> = &'a mut dyn FnMut(&TeamId, u64, u64);

/// An archive and the target of its copy.
pub struct Copy {
    from: Archive,
    to: Arc<dyn Store>,
}

impl Copy {
    /// Prepares a copy: writes the manifest if the target has none.
    ///
    /// # Errors
    /// [`ArchiveError::OtherArchive`] if the target holds another archive; when a store fails.
    pub fn new(from: Archive, to: Arc<dyn Store>) -> Result<Self, ArchiveError> {
        if let Some(manifest) = read_manifest(to.as_ref())?
            && manifest.id != from.id()
        {
            return Err(ArchiveError::OtherArchive { found: manifest.id, expected: from.id().to_owned() });
        }
        let id = from.id().to_owned();
        Archive::open_or_create(Arc::clone(&to), || id)?;
        Ok(Self { from, to })
    }

    /// Copies a team up to the current last line of its ledger.
    ///
    /// # Errors
    /// [`ArchiveError::OtherHistory`] if the source's ledger does not begin with the target's; when a file differs from the
    /// ledger, or a store fails. The target keeps the copied files, and the next copy continues from there.
    pub fn team(&self, team: &TeamId, progress: CopyProgress<'_>) -> Result<Copied, ArchiveError> {
        let key = TeamKey::of(team);
        let _guard = self.to.lock(&lock_of(&key)).map_err(|error| match error {
            StoreError::Locked { .. } => ArchiveError::Locked { team: team.clone() },
            other => other.into(),
        })?;
        let source = replay(self.from.store().as_ref(), self.from.id(), team)?;
        let target = replay(self.to.as_ref(), self.from.id(), team)?;
        self.check_history(&key, team, &target)?;
        let mut copied = self.files(&key, &source, team, progress)?;
        self.salts(&key, &source)?;
        recover(self.to.as_ref(), &key, &target)?;
        copied.lines = self.ledger(&key, &source, &target)?;
        self.heads(&key, source.state.seq)?;
        self.snapshots(&key, source.state.seq)?;
        Ok(copied)
    }

    /// Nothing may reach a target with another history: it can have erased the people whose rows the source still holds.
    fn check_history(&self, key: &TeamKey, team: &TeamId, target: &Replay) -> Result<(), ArchiveError> {
        let Some(last) = &target.last else { return Ok(()) };
        let path = ArchivePath::Ledger { team: key.clone(), day: last.day }.to_string();
        let has_day = ledger_days(self.from.store().as_ref(), key)?.contains(&last.day);
        let lines = if has_day { self.lines(&path)? } else { Vec::new() };
        match lines.iter().any(|line| Line::decode(&line.text).is_ok_and(|(_, hash)| hash == last.hash)) {
            true => Ok(()),
            false => Err(ArchiveError::OtherHistory { team: team.clone(), seq: last.seq }),
        }
    }

    /// The live files that the target lacks. A file with the same name and length counts as copied: `verify` reads every byte.
    fn files(
        &self,
        key: &TeamKey,
        source: &Replay,
        team: &TeamId,
        progress: CopyProgress<'_>,
    ) -> Result<Copied, ArchiveError> {
        let mut held = BTreeSet::new();
        for dataset in Dataset::ALL {
            held.extend(self.to.list(&table_of(dataset, key))?.into_iter().map(|entry| (entry.path, entry.bytes)));
        }
        let all = saturating_sum(source.state.files.values().map(|file| file.bytes));
        let mut copied = Copied::default();
        for file in source.state.files.values() {
            if held.contains(&(file.path.clone(), file.bytes)) {
                copied.held += 1;
            } else {
                self.file(file)?;
                (copied.files, copied.bytes) = (copied.files + 1, copied.bytes + file.bytes);
            }
            progress(team, file.bytes, all);
        }
        Ok(copied)
    }

    fn file(&self, file: &FileEntry) -> Result<(), ArchiveError> {
        let mut writer = self.to.create()?;
        let failed = |source| ArchiveError::from(StoreError::io(Verb::Write, &file.path, source));
        copy_checked(self.from.store().as_ref(), file, &mut writer, failed)?;
        Ok(writer.finish(&file.path)?)
    }

    /// Copies the salts that the ledger names. They are small, so each copy writes all of them.
    fn salts(&self, key: &TeamKey, source: &Replay) -> Result<(), ArchiveError> {
        for (month, sha256) in &source.state.salts {
            let path = SaltRecord { month: *month, sha256: *sha256 }.path(key);
            let content = get(self.from.store().as_ref(), &path)?;
            let found = Digest::of(&content);
            if found != *sha256 {
                let (bytes, found, expected) = (content.len() as u64, found.to_string(), sha256.to_string());
                return Err(ArchiveError::FileAltered { path, bytes, found, expected });
            }
            put(self.to.as_ref(), &path, &content)?;
        }
        Ok(())
    }

    /// Copies the snapshots up to a line: a reader of the target would replay the whole ledger without them.
    fn snapshots(&self, key: &TeamKey, last: LedgerSeq) -> Result<(), ArchiveError> {
        let mut ours = snapshot::listed(self.from.store().as_ref(), key)?;
        ours.retain(|(seq, _)| *seq <= last);
        for (_, Listed { path, .. }) in &ours {
            // A writer of the source can replace a snapshot meanwhile.
            if let Some(content) = if_there(get(self.from.store().as_ref(), path))? {
                put(self.to.as_ref(), path, &content)?;
            }
        }
        let held = snapshot::listed(self.to.as_ref(), key)?;
        let is_ours = |path: &str| ours.iter().any(|(_, ours)| ours.path == path);
        let gone: Vec<&str> = held.iter().map(|(_, held)| held.path.as_str()).filter(|path| !is_ours(path)).collect();
        Ok(self.to.remove_all(&gone)?)
    }

    /// Appends the lines that the target's ledger lacks, and returns their number. [`Copy::check_history`] has compared the others.
    fn ledger(&self, key: &TeamKey, source: &Replay, target: &Replay) -> Result<u64, ArchiveError> {
        let (mut seq, mut appended) = (LedgerSeq(0), 0);
        for day in ledger_days(self.from.store().as_ref(), key)? {
            let path = ArchivePath::Ledger { team: key.clone(), day }.to_string();
            for TextLine { offset: keep, text, .. } in self.lines(&path)? {
                seq = seq.next();
                if seq > source.state.seq {
                    return Ok(appended);
                }
                if seq > target.state.seq {
                    // The newest line can lack its newline.
                    self.to.append(&path, Tail { keep, torn: 0 }, &[&text[..], b"\n"].concat())?;
                    appended += 1;
                }
            }
        }
        Ok(appended)
    }

    /// The lines of a file. The last one can be torn.
    fn lines(&self, path: &str) -> Result<Vec<TextLine>, ArchiveError> {
        let lines = TextLines::new(self.from.store().read(path)?, 0).zip(1..);
        lines.map(|(line, number)| line.map_err(|fault| fault.at(path, number))).collect()
    }

    /// Copies the signatures up to a line, from where the target's end. A power loss can have torn its last one.
    fn heads(&self, key: &TeamKey, last: LedgerSeq) -> Result<(), ArchiveError> {
        let path = |day| ArchivePath::Heads { team: key.clone(), day }.to_string();
        let (_, end) = heads::recover(self.to.as_ref(), key)?;
        for day in heads_days(self.from.store().as_ref(), key)?.into_iter().filter(|day| Some(*day) >= end.day) {
            let path = path(day);
            let held = if end.day == Some(day) { end.len } else { 0 };
            let lines = self.lines(&path)?.into_iter().filter(|line| line.has_newline && line.offset >= held);
            for TextLine { offset: keep, text, .. } in lines {
                let damaged = |reason| ArchiveError::Damaged { path: path.clone(), line: 0, reason };
                if HeadLine::decode(&text).map_err(damaged)?.seq() > last {
                    return Ok(());
                }
                self.to.append(&path, Tail { keep, torn: 0 }, &[&text[..], b"\n"].concat())?;
            }
        }
        Ok(())
    }
}

//! Copies an archive from one store to another, and continues an interrupted copy.
//!
//! For each team, the copy takes first the live files and the salts, then the ledger, line by line, as a writer appends it. Until
//! the last line is appended, `verify` misses files in the target: those that a later line replaced are never copied. At the end, the
//! copy removes files as `vacuum` does: an earlier copy can have taken files that the new lines remove.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::model::path::{ArchivePath, table_of};
use crate::model::{Dataset, Digest, GRACE_MIN, LedgerSeq, TeamId, TeamKey, saturating_sum};
use crate::store::{Listed, Store, StoreError, Tail, Verb, get, if_there, put};

use super::{AddedFile, Archive, ArchiveError, CommitHistory, FileEntry};
use crate::archive::commit::writer::{COMMIT_AGE_MAX, recover};
use crate::archive::deletion::vacuum::vacuum;
use crate::archive::ledger::heads::{self, HeadLine, heads_days};
use crate::archive::ledger::ledger_files::{ledger_days, ledger_files, ledger_path};
use crate::archive::ledger::replay::{Replay, replay};
use crate::archive::ledger::snapshot;
use crate::archive::ledger::text_lines::{TextLine, TextLines};

const CHUNK_BYTES: usize = 1 << 17;

/// Counts what a copy wrote, for one team or all teams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    pub files: u64,
    pub bytes: u64,
    pub lines: u64,
    /// Files that the target already had.
    pub held: u64,
    /// Files of the target that no line names, and that were older than the grace.
    pub removed: u64,
}

/// A step of a copy, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyStep {
    /// The size of a team's live files.
    Needed(u64),
    /// The size of one of them, which the target has now.
    Held(u64),
}

pub type CopyProgress<'a> = &'a (dyn Fn(CopyStep) + Sync);

/// An archive and the target of its copy.
pub struct Copy {
    from: Archive,
    to: Archive,
}

impl Copy {
    /// Prepares a copy: writes the manifest if the target has none. `grace` is the target's.
    ///
    /// # Errors
    /// [`ArchiveError::OtherArchive`] if the target holds another archive; when a store fails.
    pub fn new(from: Archive, to: Arc<dyn Store>, grace: Duration) -> Result<Self, ArchiveError> {
        let to = Archive::open_or_create(to, || from.id().to_owned())?.with_grace(grace);
        if to.id() != from.id() {
            return Err(ArchiveError::OtherArchive { found: to.id().to_owned(), expected: from.id().to_owned() });
        }
        Ok(Self { from, to })
    }

    /// Copies the snapshots of a team that has no line in the target. Every command refuses a place where a team has a snapshot and
    /// no line. So call this for all teams first: then nobody takes an unfinished copy for whole, or begins another ledger in it.
    ///
    /// # Errors
    /// When a store fails. [`Copy::team`] tries again.
    pub fn begin(&self, team: &TeamId) -> Result<(), ArchiveError> {
        let key = TeamKey::of(team);
        if ledger_files(self.to.store().as_ref(), &key)?.iter().all(|(_, bytes)| *bytes == 0) {
            self.snapshots(&key, LedgerSeq(u64::MAX))?;
        }
        Ok(())
    }

    /// Copies a team up to the current last line of its ledger.
    ///
    /// # Errors
    /// [`ArchiveError::OtherHistory`] if the source's ledger does not begin with the target's: nothing may reach such a target, which
    /// can have erased the people whose rows the source still holds. When a file differs from the ledger, or a store fails. The
    /// target keeps the copied files, and the next copy continues from there.
    pub fn team(&self, team: &TeamId, progress: CopyProgress<'_>) -> Result<Copied, ArchiveError> {
        let (key, to, _guard) = (TeamKey::of(team), self.to.store().as_ref(), self.to.lock(team)?);
        let source = replay(self.from.store().as_ref(), self.from.id(), team)?;
        let target = replay(to, self.from.id(), team)?;
        let CommitHistory { lines, files } = self.from.lines(team, source.state.seq)?;
        if target.last.is_some() && !lines.iter().any(|line| line.sha256 == target.state.head) {
            return Err(ArchiveError::OtherHistory { team: team.clone(), seq: target.state.seq });
        }
        recover(to, &key, &target)?;
        if target.state.seq.0 == 0 {
            self.begin(team)?;
        }
        let mut copied = self.files_and_lines(&source, files.into_values().collect(), target.state.seq, progress)?;
        self.heads(&key, source.state.seq)?;
        self.snapshots(&key, source.state.seq)?;
        copied.removed = vacuum(&self.to, team)?.expired.len() as u64;
        Ok(copied)
    }

    /// The live files that the target lacks, in the order of their lines, then the lines after `held`. A target in a bucket has no
    /// lock, and `vacuum` removes old files that no line names. So after an hour, the lines of the copied files come before more files.
    fn files_and_lines(
        &self,
        source: &Replay,
        mut files: Vec<AddedFile>,
        held: LedgerSeq,
        progress: CopyProgress<'_>,
    ) -> Result<Copied, ArchiveError> {
        let (team, to) = (&source.state.team_id, self.to.store().as_ref());
        let (mut listed, mut copied) = (BTreeMap::<String, Listed>::new(), Copied::default());
        for dataset in Dataset::ALL {
            let found = to.list(&table_of(dataset, &TeamKey::of(team)))?;
            listed.extend(found.into_iter().map(|entry| (entry.path.clone(), entry)));
        }
        files.sort_by_key(|file| file.added_seq);
        progress(CopyStep::Needed(saturating_sum(files.iter().map(|file| file.entry.bytes))));
        // The files of a copy that was interrupted in the last half hour are young enough.
        let mut begun = to.now()?.minus(COMMIT_AGE_MAX / 2);
        for AddedFile { entry: file, added_seq } in files {
            let (there, is_named) = (listed.get(&file.path), added_seq <= held);
            // The same name and length are enough here: `verify` reads every byte.
            if there.is_some_and(|there| there.bytes == file.bytes && (is_named || there.modified >= begun)) {
                copied.held += 1;
            } else {
                let (now, end) = (to.now()?, LedgerSeq(held.0 + copied.lines));
                let is_old = there.is_some_and(|there| there.modified < now.minus(self.to.grace().max(GRACE_MIN)));
                // A `vacuum` under way can still remove this name after the copy has written the file again.
                if is_old && !is_named && end.0 > 0 {
                    vacuum(&self.to, team)?;
                    return Err(ArchiveError::Leftover { path: file.path });
                }
                if now.since(begun) > COMMIT_AGE_MAX {
                    copied.lines += self.ledger(source, end, LedgerSeq(added_seq.0 - 1))?;
                    begun = now;
                }
                self.file(&file)?;
                (copied.files, copied.bytes) = (copied.files + 1, copied.bytes + file.bytes);
            }
            progress(CopyStep::Held(file.bytes));
        }
        copied.lines += self.ledger(source, LedgerSeq(held.0 + copied.lines), source.state.seq)?;
        Ok(copied)
    }

    fn file(&self, file: &FileEntry) -> Result<(), ArchiveError> {
        let mut writer = self.to.store().create()?;
        let failed = |source| ArchiveError::from(StoreError::io(Verb::Write, &file.path, source));
        copy_checked(self.from.store().as_ref(), file, &mut writer, failed)?;
        Ok(writer.finish(&file.path)?)
    }

    /// Copies the salts that the ledger names. They are small, so each copy writes all of them.
    fn salts(&self, key: &TeamKey, source: &Replay) -> Result<(), ArchiveError> {
        for salt in source.state.named_salts() {
            let path = salt.path(key);
            let content = get(self.from.store().as_ref(), &path)?;
            let found = Digest::of(&content);
            if found != salt.sha256 {
                return Err(altered(path, content.len() as u64, found, salt.sha256));
            }
            put(self.to.store().as_ref(), &path, &content)?;
        }
        Ok(())
    }

    /// Copies the snapshots up to a line: a reader of the target would replay the whole ledger without them.
    fn snapshots(&self, key: &TeamKey, last: LedgerSeq) -> Result<(), ArchiveError> {
        let mut ours = snapshot::listed(self.from.store().as_ref(), key)?;
        ours.retain(|seq, _| *seq <= last);
        for Listed { path, .. } in ours.values() {
            // A writer of the source can replace a snapshot meanwhile.
            if let Some(content) = if_there(get(self.from.store().as_ref(), path))? {
                put(self.to.store().as_ref(), path, &content)?;
            }
        }
        let held = snapshot::listed(self.to.store().as_ref(), key)?;
        let gone = held.iter().filter(|(seq, _)| !ours.contains_key(seq)).map(|(_, held)| held.path.as_str());
        let gone: Vec<&str> = gone.collect();
        Ok(self.to.store().remove(&gone)?)
    }

    /// Copies the salts, and appends the lines after `held` up to `last`. Returns their number. The other lines are equal.
    fn ledger(&self, source: &Replay, held: LedgerSeq, last: LedgerSeq) -> Result<u64, ArchiveError> {
        let key = &TeamKey::of(&source.state.team_id);
        self.salts(key, source)?;
        let (mut seq, mut appended) = (LedgerSeq(0), 0);
        for day in ledger_days(self.from.store().as_ref(), key)? {
            let path = ledger_path(key, day);
            for TextLine { offset: keep, text, .. } in self.lines(&path)? {
                seq = seq.next();
                if seq > last {
                    return Ok(appended);
                }
                if seq > held {
                    // The newest line can lack its newline.
                    self.to.store().append(&path, Tail { keep, torn: 0 }, &[&text[..], b"\n"].concat())?;
                    appended += 1;
                }
            }
        }
        Ok(appended)
    }

    /// The lines of a file. The last one can be torn.
    fn lines(&self, path: &str) -> Result<Vec<TextLine>, ArchiveError> {
        TextLines::new(path, self.from.store().read(path)?, 0).collect()
    }

    /// Copies the signatures up to a line, from where the target's end. A power loss can have torn its last one.
    fn heads(&self, key: &TeamKey, last: LedgerSeq) -> Result<(), ArchiveError> {
        let path = |day| ArchivePath::Heads { team: key.clone(), day }.to_string();
        let (_, end) = heads::recover(self.to.store().as_ref(), key)?;
        for day in heads_days(self.from.store().as_ref(), key)?.into_iter().filter(|day| Some(*day) >= end.day) {
            let path = path(day);
            let held = if end.day == Some(day) { end.len } else { 0 };
            let lines = self.lines(&path)?.into_iter().filter(|line| line.has_newline && line.offset >= held);
            for TextLine { offset: keep, text, .. } in lines {
                let damaged = |reason| ArchiveError::Damaged { path: path.clone(), line: 0, reason };
                if HeadLine::decode(&text).map_err(damaged)?.signed().0 > last {
                    return Ok(());
                }
                self.to.store().append(&path, Tail { keep, torn: 0 }, &[&text[..], b"\n"].concat())?;
            }
        }
        Ok(())
    }
}

/// Copies a live file to `target`. After an error the caller deletes the copy.
///
/// # Errors
/// [`ArchiveError::FileAltered`] when the file differs from the ledger; when the store fails; the result of `failed` when
/// `target` cannot be written.
pub fn copy_checked<E: From<ArchiveError>>(
    store: &dyn Store,
    file: &FileEntry,
    target: &mut dyn Write,
    failed: impl Fn(io::Error) -> E,
) -> Result<(), E> {
    let not_read = |source| ArchiveError::from(StoreError::io(Verb::Read, &file.path, source));
    let mut reader = store.read(&file.path).map_err(ArchiveError::from)?.reader(0);
    let (mut hasher, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; CHUNK_BYTES]);
    loop {
        let read = reader.read(&mut buffer).map_err(not_read)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        bytes += read as u64;
        target.write_all(&buffer[..read]).map_err(&failed)?;
    }
    let found = Digest(hasher.finalize().into());
    if (found, bytes) == (file.sha256, file.bytes) {
        return Ok(());
    }
    Err(altered(file.path.clone(), bytes, found, file.sha256).into())
}

fn altered(path: String, bytes: u64, found: Digest, expected: Digest) -> ArchiveError {
    ArchiveError::FileAltered { path, bytes, found: found.to_string(), expected: expected.to_string() }
}

//! Carries out an order in one team: writes files again, commits them, and removes the old files.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::path::DataPath;
use crate::model::{Dataset, Instant, LedgerSeq};
use crate::planted::{self, Bug};
use crate::store::{Unerased, erase_all};

use super::eraser::Eraser;
use super::record::{ErasedPart, ErasedRecord};
use super::scan::{changes, older_versions, part_of};
use super::{Order, PendingOrder, ResaltedFile};
use crate::archive::commit::stage::write_file;
use crate::archive::deletion::vacuum::{abort_uploads, may_be_named, unnamed};
use crate::archive::ledger::state_error::StateError;
use crate::archive::salts::{DRAFTS_MONTH, Salts};
use crate::archive::table::{Selection, TableReader, digest_file, salt_months};
use crate::archive::{ArchiveError, Body, Committed, FileEntry, TeamWriter};

/// An order commits the files of this time in one line, and continues with another line: see [`ArchiveError::Stalled`].
const LINE_AGE_MAX: Duration = Duration::from_secs(30 * 60);

/// The result of an order in one team.
#[derive(Debug, Clone, Default)]
pub struct Erasure {
    /// The last line with changed rows; `None` if no row held the subject, and no other writer had to be fenced.
    pub seq: Option<LedgerSeq>,
    pub parts: Vec<ErasedPart>,
    /// The number of removed files.
    pub removed: u64,
    /// Files that may still have a version in the store.
    pub unerased: Vec<Unerased>,
}

/// The files of an order's next line.
#[derive(Default)]
struct RewrittenFiles {
    /// The store's time before the first file; `None` if there is no file.
    begun: Option<Instant>,
    adds: Vec<FileEntry>,
    removes: Vec<String>,
    parts: Vec<ErasedPart>,
    /// The months of the changed rows.
    months: BTreeSet<Instant>,
}

impl TeamWriter {
    /// Carries out an order. Writes no line if no row holds the subject and every file is named by a line.
    ///
    /// # Errors
    /// As [`TeamWriter::commit`], and when a hold covers the rows. Then the user must give the order again.
    pub fn erase(&mut self, order: &Order, pending: &PendingOrder, now: Instant) -> Result<Erasure, ArchiveError> {
        self.begin_commit()?;
        self.refuse_held(order)?;
        let key = self.salts().key()?;
        let eraser = Eraser::new(order, key);
        let (order, subjects) = (order.id.clone(), order.subject.digests(&key));
        let record = ErasedRecord { order, at: now, subjects, parts: Vec::new(), resalted: Vec::new() };
        pending.save(self.store())?;
        let mut erasure = Erasure::default();
        let mut paths = self.paths_to_search().into_iter();
        loop {
            let files = self.rewrite_next(&mut paths, &eraser)?;
            let RewrittenFiles { begun, adds, mut removes, parts, mut months } = files;
            let Some(begun) = begun else { break };
            removes.sort();
            months.retain(|month| pending.is_unlinkable() && *month != DRAFTS_MONTH);
            let erased = Some(ErasedRecord { parts: by_dataset(parts.iter().copied()), ..record.clone() });
            let body = Body { adds, removes, erased, ..Body::default() };
            if let Committed::Committed { seq, .. } = self.commit_erasure(body, &months, begun, now)? {
                erasure.seq = Some(seq);
                erasure.parts = by_dataset(erasure.parts.into_iter().chain(parts));
            }
        }
        if let Err(error) = abort_uploads(self.store(), &self.state().team_id) {
            erasure.unerased.push(Unerased { path: "unfinished uploads".to_owned(), why: error.to_string() });
        }
        let (old, foreign) = unnamed(self.store(), self.state())?;
        erasure.unerased.extend(foreign);
        erasure.unerased.extend(old.iter().filter_map(|entry| {
            let why = format!("this name is removed, but it was {}", entry.irregular.as_ref()?);
            Some(Unerased { path: entry.path.clone(), why })
        }));
        if may_be_named(self.store(), &self.state().team_id, &old)? {
            // A bucket has no locks, so another writer may be about to name one of these files. A line that changes no row refuses
            // its commit, and it reads the events again.
            let (begun, body) = (self.store().now()?, Body { erased: Some(record), ..Body::default() });
            if let Committed::Committed { seq, .. } = self.commit_files(body, begun, now)? {
                erasure.seq = erasure.seq.or(Some(seq));
            }
        }
        let old: Vec<&str> = old.iter().map(|entry| entry.path.as_str()).collect();
        if planted::is(Bug::ErasedFilesKept) {
            return Ok(erasure);
        }
        erasure.unerased.extend(erase_all(self.store(), &old)?);
        erasure.removed = old.len() as u64;
        erasure.unerased.extend(self.erase_versions()?);
        Ok(erasure)
    }

    /// Erases the older versions of files that were removed before: by `vacuum`, or by this order before an interruption.
    fn erase_versions(&self) -> Result<Vec<Unerased>, ArchiveError> {
        let (removed, unknown) = older_versions(self.store(), self.state())?;
        let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
        let mut unerased = erase_all(self.store(), &removed)?;
        unerased.extend(unknown);
        Ok(unerased)
    }

    /// Refuses an order whose rows a hold covers. The user can have added the hold since the order began, to any team's ledger.
    fn refuse_held(&self, order: &Order) -> Result<(), ArchiveError> {
        let team = self.state().team_id.clone();
        let Some(hold) = self.archive.holds_on_order(&team, order)?.into_iter().next() else { return Ok(()) };
        let reason = format!(
            "erasure {}: hold {hold} covers rows that it would change: they stay until the hold is released",
            order.id
        );
        Err(ArchiveError::State { team, source: StateError::Protected(reason) })
    }

    /// Commits the files of an order, and replaces the salts of these months. The old salts go, so nobody can compare the digests of
    /// earlier lines with a guessed row any more. The line gives each affected file its new row digest.
    fn commit_erasure(
        &mut self,
        mut body: Body,
        months: &BTreeSet<Instant>,
        begun: Instant,
        now: Instant,
    ) -> Result<Committed, ArchiveError> {
        if months.is_empty() {
            return self.commit_files(body, begun, now);
        }
        let salts = self.salts().replacing(months);
        let resalted = self.resalted(&body, &salts)?;
        if let Some(record) = &mut body.erased {
            record.resalted = resalted;
        }
        let old = std::mem::replace(&mut self.salts, salts);
        self.commit_files(body, begun, now).inspect_err(|_| self.salts = old)
    }

    /// The live files after a line whose row digests differ under `salts`.
    fn resalted(&self, body: &Body, salts: &Salts) -> Result<Vec<ResaltedFile>, ArchiveError> {
        let kept = self.state().files.values().filter(|file| !body.removes.contains(&file.path));
        let mut changed = Vec::new();
        for file in kept.chain(&body.adds) {
            let digest = digest_file(self.store(), file, salts)?.1?.digest;
            if digest != file.rows_digest {
                changed.push(ResaltedFile { path: file.path.clone(), rows_digest: digest });
            }
        }
        changed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changed)
    }

    /// The live files that can hold the subject.
    fn paths_to_search(&self) -> Vec<String> {
        let datasets = Dataset::ALL.iter();
        let datasets = datasets.filter(|of| **of != Dataset::Quarantine || !planted::is(Bug::QuarantineNotErased));
        datasets.flat_map(|dataset| self.state().files_of(*dataset)).map(|file| file.path.clone()).collect()
    }

    /// Writes the next files that hold the subject, until one line has enough of them.
    fn rewrite_next(
        &self,
        paths: &mut impl Iterator<Item = String>,
        eraser: &Eraser<'_>,
    ) -> Result<RewrittenFiles, ArchiveError> {
        let mut files = RewrittenFiles::default();
        for path in paths {
            let file = self.state().files.get(&path).expect("BUG: an order removes only files that it has searched");
            let part = part_of(self.store(), file, eraser, self.salts(), &mut |rows| {
                files.months.extend(salt_months(rows)?);
                Ok(())
            })?;
            if let Some(part) = part {
                if files.begun.is_none() {
                    files.begun = Some(self.store().now()?);
                }
                files.adds.push(self.rewrite(file, &part, eraser)?);
                files.removes.push(path);
                files.parts.push(part);
            }
            if let Some(begun) = files.begun
                && self.store().now()?.since(begun) >= LINE_AGE_MAX
            {
                break;
            }
        }
        Ok(files)
    }

    /// Writes a file again without the subject, and reads it back.
    fn rewrite(&self, entry: &FileEntry, part: &ErasedPart, eraser: &Eraser<'_>) -> Result<FileEntry, ArchiveError> {
        let store = self.store();
        let table_error = |detail: String| ArchiveError::Table { path: entry.path.clone(), detail };
        let place =
            DataPath::parse(&entry.path).ok_or_else(|| table_error("not the path of a data file".to_owned()))?;
        let sum = entry.sum().less(part.erased()).plus(part.replaced());
        let new = write_file(store, self.salts(), &place, (sum, self.salts().nonce()), |table| {
            for batch in TableReader::open(store, &entry.path, entry.dataset, Selection::default())? {
                let batch = batch?;
                let changed = eraser.rows(entry.dataset, &batch).map_err(table_error)?;
                table.write(changed.as_ref().map_or(&batch, |changed| &changed.all))?;
            }
            Ok(())
        })?;
        changes(store, (&new.path, new.dataset), eraser, &mut |_| {
            Err("the new file still holds the subject".to_owned())
        })?;
        Ok(new)
    }
}

fn by_dataset(parts: impl Iterator<Item = ErasedPart>) -> Vec<ErasedPart> {
    let mut sums: BTreeMap<Dataset, ErasedPart> = BTreeMap::new();
    for part in parts {
        sums.entry(part.dataset).and_modify(|sum| *sum = sum.plus(part)).or_insert(part);
    }
    sums.into_values().collect()
}

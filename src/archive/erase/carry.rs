//! Carries out an order in one team: writes files again, commits one line, and removes the old files.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::path::DataPath;
use crate::model::{Dataset, Digest, Instant, LedgerSeq};
use crate::planted::{self, Bug};
use crate::store::Unerased;

use super::super::salts::{Salt, Salts};
use super::super::stage::read_back;
use super::super::table::{RowsDigest, Selection, TableReader, TableWriter, digest_rows, salt_months, times_of};
use super::super::vacuum::{may_be_named, unnamed};
use super::super::{ArchiveError, Body, Committed, FileEntry, TeamWriter};
use super::eraser::{Changed, Eraser};
use super::record::{ErasedPart, ErasedRecord};
use super::scan::changes;
use super::unlink::{replaceable, resalted};
use super::{Order, PendingOrder, bad, key_of};

/// A live file that holds the subject.
struct ErasedFile {
    entry: FileEntry,
    rows: Rows,
}

/// The rows that hold the subject: their number, the sums of their digests before and after, and their times.
#[derive(Clone, Copy, Default)]
pub(super) struct Rows {
    count: u64,
    erased: RowsDigest,
    replaced: RowsDigest,
    times: Option<(i64, i64)>,
}

impl Rows {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let times = self.times.into_iter().chain(other.times);
        Self {
            count: self.count + other.count,
            erased: self.erased.plus(other.erased),
            replaced: self.replaced.plus(other.replaced),
            times: times.reduce(|all, some| (all.0.min(some.0), all.1.max(some.1))),
        }
    }

    pub(super) fn of(changed: &Changed, salts: &Salts) -> Result<Self, String> {
        let times = times_of(&changed.before)?;
        let times = times.iter().flatten();
        Ok(Self {
            count: changed.before.num_rows() as u64,
            erased: digest_rows(&changed.before, salts)?,
            replaced: digest_rows(&changed.after, salts)?,
            times: times.clone().min().zip(times.max()),
        })
    }

    pub(super) fn part(self, dataset: Dataset, files: u64) -> ErasedPart {
        ErasedPart {
            dataset,
            files,
            rows: self.count,
            erased_digest: self.erased.into(),
            replaced_digest: self.replaced.into(),
            first: self.times.map(|(first, _)| Instant::from_nanos(first)),
            last: self.times.map(|(_, last)| Instant::from_nanos(last)),
        }
    }
}

/// The result of an order in one team.
#[derive(Debug, Clone, Default)]
pub struct Erasure {
    /// The line; `None` if no row held the subject, and no other writer had to be fenced.
    pub seq: Option<LedgerSeq>,
    pub parts: Vec<ErasedPart>,
    /// The number of removed files.
    pub removed: u64,
    /// Files that may still have a version in the store.
    pub unerased: Vec<Unerased>,
}

impl TeamWriter {
    /// Carries out an order. Does nothing if no row holds the subject and every file is named by a line.
    ///
    /// # Errors
    /// As [`TeamWriter::commit`]. Then the user must give the order again.
    pub fn erase(&mut self, order: &Order, pending: &PendingOrder, now: Instant) -> Result<Erasure, ArchiveError> {
        self.begin_commit()?;
        let key = key_of(self.salts())?;
        let eraser = Eraser::new(order, key);
        let (files, months) = self.files_with(&eraser)?;
        let mut erasure = Erasure::default();
        let begun = self.store().now()?;
        let adds = files.iter().map(|file| self.rewrite(file, &eraser)).collect::<Result<Vec<_>, _>>()?;
        let kept_at = pending.keep(self.store())?;
        if !files.is_empty() {
            let parts = parts(&files);
            let mut removes: Vec<String> = files.into_iter().map(|file| file.entry.path).collect();
            removes.sort();
            let subjects = order.subject.digests(&key);
            let months = if pending.is_unlinkable() { replaceable(months) } else { BTreeSet::new() };
            let record =
                ErasedRecord { order: order.id.clone(), at: now, subjects, parts: parts.clone(), resalted: Vec::new() };
            let body = Body { adds, removes, erased: Some(record), ..Body::default() };
            if let Committed::Committed { seq, .. } = self.commit_erasure(body, &months, begun, now)? {
                (erasure.seq, erasure.parts) = (Some(seq), parts);
            }
        }
        let mut old = unnamed(self.store(), &self.state().archive_id, &self.state().team_id)?;
        old.retain(|entry| entry.modified <= kept_at);
        if erasure.seq.is_none() && may_be_named(self.store(), &self.state().team_id, &old)? {
            erasure.seq = self.fence(order, &key, begun, now)?;
        }
        let old: Vec<&str> = old.iter().map(|entry| entry.path.as_str()).collect();
        if planted::is(Bug::ErasedFilesKept) {
            return Ok(erasure);
        }
        erasure.unerased = self.store().erase_all(&old)?;
        erasure.removed = old.len() as u64;
        Ok(erasure)
    }

    /// Appends a line that changes no row. A bucket has no locks, so another writer may be about to name a file that the order
    /// removes: the line refuses its commit, and it reads the events again.
    fn fence(
        &mut self,
        order: &Order,
        key: &Salt,
        begun: Instant,
        now: Instant,
    ) -> Result<Option<LedgerSeq>, ArchiveError> {
        let record = ErasedRecord {
            order: order.id.clone(),
            at: now,
            subjects: order.subject.digests(key),
            parts: Vec::new(),
            resalted: Vec::new(),
        };
        let body = Body { erased: Some(record), ..Body::default() };
        match self.commit_files(body, begun, now)? {
            Committed::Committed { seq, .. } => Ok(Some(seq)),
            Committed::AlreadyCommitted { .. } | Committed::Nothing => Ok(None),
        }
    }

    /// Commits the files of an order, and replaces the salts of these months.
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
        let kept = self.state().files.values().filter(|file| !body.removes.contains(&file.path));
        let resalted = resalted(self.store(), kept.chain(&body.adds), &salts)?;
        if let Some(record) = &mut body.erased {
            record.resalted = resalted;
        }
        let old = self.swap_salts(salts);
        self.commit_files(body, begun, now).inspect_err(|_| drop(self.swap_salts(old)))
    }

    /// The files that hold the subject, and the months of these rows.
    fn files_with(&self, eraser: &Eraser<'_>) -> Result<(Vec<ErasedFile>, BTreeSet<Instant>), ArchiveError> {
        let (mut found, mut months) = (Vec::new(), BTreeSet::new());
        let datasets = Dataset::ALL.iter();
        let datasets = datasets.filter(|of| **of != Dataset::Quarantine || !planted::is(Bug::QuarantineNotErased));
        for entry in datasets.flat_map(|dataset| self.state().files_of(*dataset)) {
            let mut rows = Rows::default();
            changes(self.store(), entry, eraser, &mut |changed| {
                let refused = |reason| bad(&self.state().team_id, reason);
                rows = rows.plus(Rows::of(&changed, self.salts()).map_err(refused)?);
                months.extend(salt_months(&changed.before).map_err(refused)?);
                Ok(())
            })?;
            if rows.count > 0 {
                found.push(ErasedFile { entry: entry.clone(), rows });
            }
        }
        Ok((found, months))
    }

    /// Writes a file again without the subject, and reads it back.
    fn rewrite(&self, file: &ErasedFile, eraser: &Eraser<'_>) -> Result<FileEntry, ArchiveError> {
        let (store, entry) = (self.store(), &file.entry);
        let table = |detail: String| ArchiveError::Table { path: entry.path.clone(), detail };
        let place = DataPath::parse(&entry.path).ok_or_else(|| table("not the path of a data file".to_owned()))?;
        let mut writer = TableWriter::create(store, entry.dataset, entry.rows, self.salts().nonce())?;
        for batch in TableReader::open(store, &entry.path, entry.dataset, Selection::default())? {
            let batch = batch?;
            let changed = eraser.rows(entry.dataset, &batch).map_err(table)?;
            writer.write(changed.as_ref().map_or(&batch, |changed| &changed.all))?;
        }
        let name = |hash: Digest| DataPath { hash: hash.short(), ..place.clone() }.to_string();
        let written = writer.finish(name)?;
        let path = name(written.sha256);
        let meant = RowsDigest::from(entry.rows_digest).less(file.rows.erased).plus(file.rows.replaced);
        read_back(store, self.salts(), (&path, entry.dataset), &written, (entry.rows, meant))?;
        let entry = FileEntry {
            path,
            bytes: written.bytes,
            sha256: written.sha256,
            rows_digest: meant.into(),
            ..entry.clone()
        };
        changes(store, &entry, eraser, &mut |_| Err(table("the new file still holds the subject".to_owned())))?;
        Ok(entry)
    }
}

/// The sums of the files, by dataset.
fn parts(files: &[ErasedFile]) -> Vec<ErasedPart> {
    let mut parts: BTreeMap<Dataset, (Rows, u64)> = BTreeMap::new();
    for file in files {
        let (rows, files) = parts.entry(file.entry.dataset).or_default();
        (*rows, *files) = (rows.plus(file.rows), *files + 1);
    }
    parts.into_iter().map(|(dataset, (rows, files))| rows.part(dataset, files)).collect()
}

//! The first step of a commit: files under `staging/`, durable, read back and compared before a line may name them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};

use crate::model::{LedgerSeq, TeamId};

use super::path::{ArchivePath, DataPath, TeamKey};
use super::plan::{Content, Output};
use super::store::{Store, StoreError, Verb};
use super::table::{
    BATCH_ROWS_MAX, MergeInput, RowsDigest, Selection, TableReader, TableWriter, Written, chunk_rows, digest_rows,
    event_batch, inventory_batch, merge, reject_batch,
};
use super::{ArchiveError, Dataset, FileEntry};

/// Quarantined events may be large, and are few.
const REJECTS_PER_BATCH: usize = 64;
/// Files written at once, at most: each holds a row group in memory.
const THREADS_MAX: usize = 4;
/// Fewer rows are not worth a thread.
const ROWS_A_THREAD_MIN: u64 = 10_000;

/// Where files are staged: the team, and the number of the line that is going to name them.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    pub store: &'a dyn Store,
    pub team: &'a TeamId,
    pub key: &'a TeamKey,
    pub seq: LedgerSeq,
}

impl Stage<'_> {
    /// Writes all files, several at once where they are large, and says what the ledger is to say about each.
    ///
    /// # Errors
    /// As [`Stage::write`].
    pub fn write_all(self, outputs: Vec<Output>) -> Result<Vec<FileEntry>, ArchiveError> {
        let rows: u64 = outputs.iter().map(Output::rows).sum();
        let wanted = usize::try_from(rows / ROWS_A_THREAD_MIN).unwrap_or(usize::MAX).min(outputs.len());
        let threads = wanted.min(THREADS_MAX).min(available_parallelism().map_or(1, usize::from));
        if threads <= 1 {
            return outputs.into_iter().enumerate().map(|(index, output)| self.write(index, output)).collect();
        }
        let waiting = Mutex::new(outputs.into_iter().enumerate().collect::<VecDeque<_>>());
        let take = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let write_some = || {
            let mut written = Vec::new();
            while let Some((index, output)) = take() {
                written.push((index, self.write(index, output).inspect_err(|_| while take().is_some() {})?));
            }
            Ok(written)
        };
        let done: Vec<Result<Vec<(usize, FileEntry)>, ArchiveError>> = scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(write_some)).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            threads.into_iter().map(join).collect()
        });
        let mut written = done.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        written.sort_by_key(|(index, _)| *index);
        Ok(written.into_iter().map(|(_, file)| file).collect())
    }

    /// Writes one file, makes it durable, reads it back, and says what the ledger is to say about it.
    ///
    /// # Errors
    /// When the store fails, an input cannot be read, or the file does not hold exactly the rows that it should.
    pub fn write(self, index: usize, output: Output) -> Result<FileEntry, ArchiveError> {
        let path = ArchivePath::Staging { team: self.key.clone(), seq: self.seq, index }.to_string();
        let (dataset, role, start, rows) = (output.dataset(), output.role, output.start, output.rows());
        let mut table = TableWriter::create(self.store, &path, dataset, output.tier(), rows)?;
        let expected = fill(self.store, self.team, &mut table, output.content)?;
        let written = table.finish()?;
        compare(&path, read_back(self.store, &path, dataset, &written)?, (rows, expected))?;
        let place = DataPath { dataset, team: self.key.clone(), role, start, hash: written.sha256.short() };
        Ok(FileEntry {
            path: place.to_string(),
            dataset,
            role,
            rows: written.rows,
            bytes: written.bytes,
            sha256: written.sha256,
            rows_digest: expected.into(),
            first: written.first,
            last: written.last,
        })
    }
}

/// Writes the rows and returns the digest that they must have: computed from the new rows and from what the ledger says
/// about the files that go up in this one, not from what was written.
fn fill(
    store: &dyn Store,
    team: &TeamId,
    table: &mut TableWriter,
    content: Content,
) -> Result<RowsDigest, ArchiveError> {
    let bad = |detail: String| ArchiveError::Table { path: "new rows".to_owned(), detail };
    let mut expected = RowsDigest::default();
    match content {
        Content::Rejects(rows) => {
            for some in rows.chunks(REJECTS_PER_BATCH) {
                let batch = reject_batch(some).map_err(bad)?;
                expected = expected.plus(digest_rows(&batch).map_err(bad)?);
                table.write(&batch)?;
            }
        }
        Content::Inventory { part, inputs, rows } => {
            for file in inputs {
                expected = expected.plus(file.rows_digest.into());
                for batch in TableReader::open(store, &file.path, file.dataset, Selection::default())? {
                    table.write(&batch?)?;
                }
            }
            for some in rows.chunks(BATCH_ROWS_MAX) {
                let batch = inventory_batch(team, part, some).map_err(bad)?;
                expected = expected.plus(digest_rows(&batch).map_err(bad)?);
                table.write(&batch)?;
            }
        }
        Content::Events { stream, inputs, rows } if inputs.is_empty() => {
            let mut rest = rows.as_slice();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(chunk_rows(rest));
                let batch = event_batch(stream, now).map_err(bad)?;
                expected = expected.plus(digest_rows(&batch).map_err(bad)?);
                table.write(&batch)?;
                rest = later;
            }
        }
        Content::Events { stream, inputs, rows } => {
            expected = inputs.iter().fold(expected, |sum, file| sum.plus(file.rows_digest.into()));
            let files = inputs.into_iter().map(MergeInput::File);
            let inputs = files.chain([MergeInput::Rows(stream, rows)]).collect();
            let new = merge(store, inputs, &mut |batch| table.write(batch))?;
            expected = expected.plus(new);
        }
        Content::Sessions(change) => {
            expected = change.inputs.iter().fold(expected, |sum, file| sum.plus(file.rows_digest.into()));
            expected = expected.less(change.dropped.digest).plus(change.added.digest);
            merge(store, change.into_inputs(), &mut |batch| table.write(batch))?;
        }
    }
    Ok(expected)
}

/// Nothing is believed of a file that was not read again: its bytes, and every value in it. Returns what was found.
fn read_back(
    store: &dyn Store,
    path: &str,
    dataset: Dataset,
    written: &Written,
) -> Result<(u64, RowsDigest), ArchiveError> {
    let blob = store.read(path)?;
    let sha256 = blob.digest().map_err(|e| StoreError::io(Verb::Read, path, e))?;
    if sha256 != written.sha256 {
        let (found, expected) = (sha256.to_string(), written.sha256.to_string());
        return Err(ArchiveError::ReadBack { path: path.to_owned(), found, expected });
    }
    let mut found = (0, RowsDigest::default());
    for batch in TableReader::open(store, path, dataset, Selection::default())? {
        let batch = batch?;
        let digest = digest_rows(&batch).map_err(|detail| ArchiveError::Table { path: path.to_owned(), detail })?;
        found = (found.0 + batch.num_rows() as u64, found.1.plus(digest));
    }
    Ok(found)
}

fn compare(path: &str, found: (u64, RowsDigest), expected: (u64, RowsDigest)) -> Result<(), ArchiveError> {
    if found == expected {
        return Ok(());
    }
    let say =
        |(rows, digest): (u64, RowsDigest)| format!("{rows} rows with digest {}", crate::model::Digest::from(digest));
    Err(ArchiveError::ReadBack { path: path.to_owned(), found: say(found), expected: say(expected) })
}

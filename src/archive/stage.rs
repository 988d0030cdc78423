//! The first step of a commit: writes files durably, reads them back and compares them before a line names them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};

use arrow::array::RecordBatch;
use rayon::prelude::*;

use crate::model::{Digest, EventRow, Instant, Stream};
use crate::planted::{self, Bug};

use super::output::{Content, Output};
use super::path::{DataPath, TeamKey};
use super::plan::REJECTS_PER_BATCH;
use super::random::Nonce;
use super::salts::Salts;
use super::store::{Store, StoreError, Verb};
use super::table::{
    BATCH_ROWS_MAX, Groups, MergeInput, RowsDigest, Selection, Spliced, TableReader, TableWriter, Written, by_parts,
    chunk_rows, digest_rows, event_batch, inventory_batch, merge, reject_batch, rows_again,
};
use super::{ArchiveError, Dataset, FileEntry};

/// Up to this many bytes of new rows are kept for the comparison with the file; larger ones are compared by digest.
const KEPT_BYTES_MAX: usize = 8 << 20;
/// Maximum number of files written in parallel: each holds a row group in memory.
const THREADS_MAX: usize = 4;
/// For fewer rows, a thread costs more than it saves.
const ROWS_A_THREAD_MIN: u64 = 4_000;

/// Writes the files of a team's commit.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    pub store: &'a dyn Store,
    pub key: &'a TeamKey,
    pub salts: &'a Salts,
}

impl Stage<'_> {
    /// Writes all files, large ones in parallel, and returns their ledger entries.
    ///
    /// # Errors
    /// As [`Stage::write`].
    pub fn write_all(self, outputs: Vec<Output>) -> Result<Vec<FileEntry>, ArchiveError> {
        let rows: u64 = outputs.iter().map(Output::rows).sum();
        let wanted = usize::try_from(rows / ROWS_A_THREAD_MIN).unwrap_or(usize::MAX).min(outputs.len());
        // Asking for the number of cores reads system files, so small commits do not ask.
        let threads = match wanted.min(THREADS_MAX) {
            wanted @ 2.. => wanted.min(available_parallelism().map_or(1, usize::from)),
            few => few,
        };
        // Draw the numbers in order, so that a seeded source gives the same numbers with any number of threads.
        let outputs = outputs.into_iter().map(|output| (output, self.salts.nonce()));
        if threads <= 1 {
            return outputs.map(|(output, nonce)| self.write(output, nonce)).collect();
        }
        let waiting = Mutex::new(outputs.enumerate().collect::<VecDeque<_>>());
        let take = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let write_some = || {
            let mut written = Vec::new();
            while let Some((index, (output, nonce))) = take() {
                written.push((index, self.write(output, nonce).inspect_err(|_| while take().is_some() {})?));
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

    /// Writes one file, makes it durable, reads it back, and returns its ledger entry.
    ///
    /// # Errors
    /// When the store fails, an input cannot be read, or the file holds other rows than intended.
    pub fn write(self, output: Output, nonce: Nonce) -> Result<FileEntry, ArchiveError> {
        let (dataset, role, start, rows) = (output.dataset(), output.role, output.start, output.rows());
        let tier = output.tier();
        let name =
            |hash: Digest| DataPath { dataset, team: self.key.clone(), role, start, hash: hash.short() }.to_string();
        let mut table = TableWriter::create(self.store, dataset, tier, rows, nonce)?;
        let meant = fill(self.store, self.salts, &mut table, output.content)?;
        let written = table.finish(name)?;
        let path = name(written.sha256);
        if !planted::is(Bug::NoReadBack) {
            let found = read_back(self.store, &path, dataset, &written, &meant, self.salts)?;
            compare(&path, found, (rows, meant.digest))?;
        }
        Ok(FileEntry {
            path,
            dataset,
            role,
            rows: written.rows,
            bytes: written.bytes,
            sha256: written.sha256,
            rows_digest: meant.digest.into(),
            first: written.first,
            last: written.last,
        })
    }
}

/// The intended content of a file.
#[derive(Default)]
struct Intended {
    /// The digest of all rows: from the new rows and from the ledger's entries of the input files, not from the written
    /// data.
    digest: RowsDigest,
    /// The new rows, if the file has no other rows and they are few enough to keep until the read-back.
    rows: Option<Vec<RecordBatch>>,
    spliced: Vec<Spliced>,
}

/// Writes the rows.
fn fill(store: &dyn Store, salts: &Salts, table: &mut TableWriter, content: Content) -> Result<Intended, ArchiveError> {
    let bad = |detail: String| ArchiveError::Table { path: "new rows".to_owned(), detail };
    let mut meant = Intended::default();
    match content {
        Content::Rejects { rows, .. } => {
            for some in rows.chunks(REJECTS_PER_BATCH) {
                let batch = reject_batch(some).map_err(bad)?;
                meant.digest = meant.digest.plus(digest_rows(&batch, salts).map_err(|e| bad(e.to_string()))?);
                table.write(&batch)?;
            }
        }
        Content::Events { stream, inputs, rows, digest } if inputs.is_empty() => {
            meant.digest = digest;
            if rows.iter().map(|row| row.raw.len()).sum::<usize>() <= KEPT_BYTES_MAX {
                let batches = by_parts(&rows, BATCH_ROWS_MAX, |some| event_batch(stream, some)).map_err(bad)?;
                drop(rows);
                batches.iter().try_for_each(|batch| table.write(batch))?;
                meant.rows = Some(batches);
                return Ok(meant);
            }
            let mut rest = rows.as_slice();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(chunk_rows(rest));
                table.write(&event_batch(stream, now).map_err(bad)?)?;
                rest = later;
            }
        }
        Content::Events { stream, inputs, rows, digest } => {
            meant.digest = digest;
            for run in runs(store, inputs, rows)? {
                write_run(store, table, stream, run, &mut meant)?;
            }
        }
        Content::Inventory { part, inputs, rows } => {
            for file in inputs {
                meant.digest = meant.digest.plus(file.rows_digest.into());
                for batch in TableReader::open(store, &file.path, file.dataset, Selection::default())? {
                    table.write(&batch?)?;
                }
            }
            for some in rows.chunks(BATCH_ROWS_MAX) {
                let batch = inventory_batch(salts.team(), part, some).map_err(bad)?;
                meant.digest = meant.digest.plus(digest_rows(&batch, salts).map_err(|e| bad(e.to_string()))?);
                table.write(&batch)?;
            }
        }
        Content::Sessions(change) => {
            let held = change.inputs.iter().map(|file| RowsDigest::from(file.rows_digest));
            meant.digest =
                held.fold(meant.digest, RowsDigest::plus).less(change.dropped.digest).plus(change.added.digest);
            meant.rows = change.only_new();
            meant.spliced = change.write(store, table, salts)?;
        }
    }
    Ok(meant)
}

fn write_run(
    store: &dyn Store,
    table: &mut TableWriter,
    stream: Stream,
    run: Run,
    meant: &mut Intended,
) -> Result<(), ArchiveError> {
    match run {
        Run::Splice(entry, groups) => {
            let digest = RowsDigest::from(entry.rows_digest);
            let times = entry.first.zip(entry.last).expect("BUG: only files with times are spliced");
            let at = table.splice(&groups, times)?;
            meant.digest = meant.digest.plus(digest);
            meant.spliced.push(Spliced { at, groups, rows: entry.rows, digest });
        }
        Run::Merge(entries, rows) => {
            let held = entries.iter().map(|file| RowsDigest::from(file.rows_digest));
            meant.digest = held.fold(meant.digest, RowsDigest::plus);
            let files = entries.into_iter().map(MergeInput::File);
            let inputs = files.chain([MergeInput::Rows(stream, rows)]).collect();
            merge(store, inputs, &mut |batch| table.write(batch))?;
        }
    }
    Ok(())
}

/// A part of a file that is written in one piece.
enum Run {
    Splice(FileEntry, Groups),
    Merge(Vec<FileEntry>, Vec<EventRow>),
}

/// The parts of a new file, sorted by time. An input that no other input overlaps is copied unchanged if its row groups are
/// large enough. The inputs between two such files are merged.
fn runs(store: &dyn Store, mut inputs: Vec<FileEntry>, rows: Vec<EventRow>) -> Result<Vec<Run>, ArchiveError> {
    inputs.sort_by_key(|file| file.first);
    let times = |file: &FileEntry| file.first.zip(file.last);
    let of_rows = rows.first().zip(rows.last()).map(|(first, last)| (first.time, last.time));
    let others: Vec<_> = inputs.iter().map(times).collect();
    let is_alone = |at: usize| {
        let Some((first, last)) = others[at] else { return false };
        let apart = |other: (Instant, Instant)| other.1 < first || last < other.0;
        let inputs = others.iter().enumerate().filter(|(other, _)| *other != at);
        inputs.map(|(_, other)| *other).all(|other| other.is_some_and(apart)) && of_rows.is_none_or(apart)
    };
    let whole = |(at, file)| if is_alone(at) { Groups::whole(store, file) } else { Ok(None) };
    // Each file is read to its end.
    let groups = match inputs.len() {
        0 | 1 => inputs.iter().enumerate().map(whole).collect(),
        _ => inputs.par_iter().enumerate().map(whole).collect::<Result<Vec<_>, _>>(),
    };
    let mut runs = Vec::new();
    let (mut between, mut rows) = (Vec::new(), Some(rows).filter(|rows| !rows.is_empty()));
    for (file, groups) in inputs.into_iter().zip(groups?) {
        let Some(groups) = groups else {
            between.push(file);
            continue;
        };
        let before = rows.take_if(|_| of_rows.zip(file.first).is_some_and(|((_, last), first)| last < first));
        if !between.is_empty() || before.is_some() {
            runs.push(Run::Merge(std::mem::take(&mut between), before.unwrap_or_default()));
        }
        runs.push(Run::Splice(file, groups));
    }
    if !between.is_empty() || rows.is_some() {
        runs.push(Run::Merge(between, rows.unwrap_or_default()));
    }
    Ok(runs)
}

/// Reads the whole file again and trusts nothing else: its bytes, and every value. Compares new rows one by one or by digest,
/// and copied row groups byte by byte with their source files. Returns the digest and rows that it found.
fn read_back(
    store: &dyn Store,
    path: &str,
    dataset: Dataset,
    written: &Written,
    meant: &Intended,
    salts: &Salts,
) -> Result<(u64, RowsDigest), ArchiveError> {
    let differs = |found: String, expected: String| ArchiveError::ReadBack { path: path.to_owned(), found, expected };
    let file = Groups::open(store, path)?;
    let is_as_written = || {
        let sha256 = file.blob().digest().map_err(|e| StoreError::io(Verb::Read, path, e))?;
        let is_same = sha256 == written.sha256;
        is_same.then_some(()).ok_or_else(|| differs(sha256.to_string(), written.sha256.to_string()))
    };
    let stands = |part: &Spliced| match part.groups.stand_in(&file, part.at)? {
        true => Ok(()),
        false => Err(differs(format!("other row groups after {}", part.at), "those of its inputs".to_owned())),
    };
    if meant.spliced.is_empty() {
        is_as_written()?;
    } else {
        let stand = || meant.spliced.par_iter().try_for_each(stands);
        let (is_as_written, stand) = rayon::join(is_as_written, stand);
        is_as_written.and(stand)?;
    }
    let mut found = (0, RowsDigest::default());
    let mut encoded: Vec<usize> = (0..file.count()).collect();
    for part in &meant.spliced {
        encoded.retain(|at| !(part.at..part.at + part.groups.count()).contains(at));
        found = (found.0 + part.rows, found.1.plus(part.digest));
    }
    if encoded.is_empty() {
        return Ok(found);
    }
    if let Some(rows) = &meant.rows {
        return match rows_again(store, path, dataset, Some(&encoded), rows)? {
            Some(count) => Ok((count, meant.digest)),
            None => Err(differs("other values".to_owned(), "the rows of the draft".to_owned())),
        };
    }
    let selection = Selection { groups: Some(&encoded), ..Selection::default() };
    for batch in TableReader::open(store, path, dataset, selection)? {
        let batch = batch?;
        let digest = digest_rows(&batch, salts)
            .map_err(|e| ArchiveError::Table { path: path.to_owned(), detail: e.to_string() })?;
        found = (found.0 + batch.num_rows() as u64, found.1.plus(digest));
    }
    Ok(found)
}

pub(super) fn compare(path: &str, found: (u64, RowsDigest), expected: (u64, RowsDigest)) -> Result<(), ArchiveError> {
    if found == expected {
        return Ok(());
    }
    let say = |(rows, digest): (u64, RowsDigest)| format!("{rows} rows with digest {}", Digest::from(digest));
    Err(ArchiveError::ReadBack { path: path.to_owned(), found: say(found), expected: say(expected) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::random::Nonce;
    use super::super::store::MemoryStore;
    use super::super::table::{BATCH_BYTES_MAX, Tier};
    use super::super::tests::{event, now, salts, team};
    use super::*;
    use crate::model::{ConnectionTexts, Detail};

    const STREAM: Stream = Stream::Connections;

    fn batches(rows: &[EventRow]) -> Vec<RecordBatch> {
        rows.chunks(BATCH_ROWS_MAX).map(|some| event_batch(STREAM, some).unwrap()).collect()
    }

    fn detail(host: Option<&str>) -> Detail {
        let texts = [Some("c"), Some("d"), host, None, None, None, None, None, None, None];
        Detail::Connections(ConnectionTexts::new(texts))
    }

    /// On one thread, and with the text and the other columns on one thread each.
    #[test]
    fn a_file_with_any_difference_from_the_draft_is_refused() {
        // In the last case, the read batches differ in size from the written ones.
        for (count, bytes) in [(10, 2), (ROWS_A_THREAD_MIN + 1_000, 2), (40, BATCH_BYTES_MAX / 32)] {
            let raw = bytes::Bytes::from(vec![b' '; bytes]);
            let row =
                |n: u64| EventRow { raw: raw.clone(), ..event(&n.to_string(), now().plus(Duration::from_millis(n))) };
            let mut rows: Vec<EventRow> = (0..count).map(row).collect();
            rows.last_mut().unwrap().detail = detail(None);
            let store = MemoryStore::new();
            let mut table = TableWriter::create(&store, STREAM.into(), Tier::Recent, count, Nonce(7)).unwrap();
            batches(&rows).iter().for_each(|batch| table.write(batch).unwrap());
            let written = table.finish(|_| "file".to_owned()).unwrap();
            let read = |rows: &[EventRow]| {
                let meant = Intended { rows: Some(batches(rows)), ..Intended::default() };
                read_back(&store, "file", STREAM.into(), &written, &meant, &salts())
            };
            assert_eq!(read(&rows).unwrap(), (count, RowsDigest::default()));
            let last = |change: &dyn Fn(&mut EventRow)| {
                let mut rows = rows.clone();
                change(rows.last_mut().unwrap());
                rows
            };
            for (what, rows) in [
                ("a text", last(&|row| row.raw = "{}".into())),
                ("a type", last(&|row| row.event_type = format!("{}!", row.event_type).into())),
                ("a detail", last(&|row| row.detail = detail(Some("other")))),
                ("a detail that is empty instead of missing", last(&|row| row.detail = detail(Some("")))),
                ("a team", last(&|row| row.team_id = format!("{}!", team()).as_str().into())),
                ("one row less", rows[1..].to_vec()),
                ("one row more", [rows.as_slice(), &rows[..1]].concat()),
            ] {
                let refused = read(&rows);
                assert!(matches!(refused, Err(ArchiveError::ReadBack { .. })), "{count}, {what}: {refused:?}");
            }
        }
    }
}

//! The first step of a commit: writes files durably, reads them back and compares them before a line names them.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::model::path::DataPath;
use crate::model::{Dataset, Digest, TeamKey};
use crate::planted::{self, Bug};
use crate::store::{Store, StoreError, Verb};
use crate::threads::each;

use super::plan::REJECTS_PER_BATCH;
use super::planned_file::{MergedRows, PlannedFile, PlannedRows};
use super::random::Nonce;
use super::rows_sum::RowsSum;
use super::salts::Salts;
use super::table::{
    BATCH_ROWS_MAX, MergeInput, Selection, TableReader, TableWriter, Written, digest_file, digest_rows,
    inventory_batch, merge, reject_batch, threads_for,
};
use super::{ArchiveError, FileEntry};

/// Writes the files of a team's commit, large ones in parallel, and returns their ledger entries.
pub fn write_all(store: &dyn Store, salts: &Salts, planned: Vec<PlannedFile>) -> Result<Vec<FileEntry>, ArchiveError> {
    let threads = threads_for(planned.iter().map(PlannedFile::rows));
    // Draw the numbers in order, so that a seeded source gives the same numbers with any number of threads.
    let planned: Vec<(PlannedFile, Nonce)> = planned.into_iter().map(|file| (file, salts.nonce())).collect();
    each(planned, threads, |(file, nonce)| write(store, salts, file, nonce))
}

/// # Errors
/// When the store fails, an input cannot be read, or the file holds other rows than intended.
fn write(store: &dyn Store, salts: &Salts, file: PlannedFile, nonce: Nonce) -> Result<FileEntry, ArchiveError> {
    let rows = file.rows();
    let PlannedFile { dataset, role, start, inputs, content } = file;
    let place = DataPath { dataset, team: TeamKey::of(salts.team()), role, start, hash: String::new() };
    write_file(store, salts, &place, (rows, nonce), |table| fill(store, salts, table, inputs, content))
}

/// Writes one file, makes it durable, reads it back, and returns its ledger entry. `place` lacks the hash. `fill` writes the rows, and
/// returns the sum that they must have.
pub fn write_file(
    store: &dyn Store,
    salts: &Salts,
    place: &DataPath,
    (rows, nonce): (u64, Nonce),
    fill: impl FnOnce(&mut TableWriter) -> Result<RowsSum, ArchiveError>,
) -> Result<FileEntry, ArchiveError> {
    let dataset = place.dataset;
    let name = |hash: Digest| DataPath { hash: hash.short(), ..place.clone() }.to_string();
    let mut table = TableWriter::create(store, dataset, rows, nonce)?;
    let sum = fill(&mut table)?;
    let written = table.finish(name)?;
    let path = name(written.sha256);
    if !planted::is(Bug::NoReadBack) {
        read_back(store, salts, (&path, dataset), &written, sum)?;
    }
    let (role, rows_digest) = (place.role, sum.digest);
    let Written { rows, bytes, sha256, first, last } = written;
    Ok(FileEntry { path, dataset, role, rows, bytes, sha256, rows_digest, first, last })
}

/// Writes the rows. Returns their sum: from the new rows and from the ledger's entries of the input files, not from the
/// written data.
fn fill(
    store: &dyn Store,
    salts: &Salts,
    table: &mut TableWriter,
    inputs: Vec<FileEntry>,
    content: PlannedRows,
) -> Result<RowsSum, ArchiveError> {
    let bad = |detail: String| ArchiveError::Table { path: "new rows".to_owned(), detail };
    let held = RowsSum::of_files(&inputs);
    let add = |table: &mut TableWriter, batch: Result<RecordBatch, String>| {
        let batch = batch.map_err(bad)?;
        table.write(&batch)?;
        digest_rows(&batch, salts).map_err(|e| bad(e.to_string()))
    };
    match content {
        PlannedRows::Merged(MergedRows { batches, added, drop_ids, dropped }) => {
            let files = inputs.into_iter().map(|file| MergeInput::File(file, Arc::clone(&drop_ids)));
            let inputs = files.chain([MergeInput::Batches(batches)]).collect();
            merge(store, inputs, &mut |batch| table.write(batch))?;
            Ok(held.plus(added).less(dropped))
        }
        PlannedRows::Rejects(rows) => {
            let mut batches = rows.chunks(REJECTS_PER_BATCH).map(reject_batch);
            batches.try_fold(RowsSum::default(), |sum, batch| Ok(sum.plus(add(table, batch)?)))
        }
        PlannedRows::Inventory(part, rows) => {
            for file in &inputs {
                for batch in TableReader::open(store, &file.path, file.dataset, Selection::default())? {
                    table.write(&batch?)?;
                }
            }
            let mut batches = rows.chunks(BATCH_ROWS_MAX).map(|some| inventory_batch(salts.team(), part, some));
            batches.try_fold(held, |sum, batch| Ok(sum.plus(add(table, batch)?)))
        }
    }
}

/// Reads the whole file again and trusts nothing else: its bytes, and every value.
fn read_back(
    store: &dyn Store,
    salts: &Salts,
    (path, dataset): (&str, Dataset),
    written: &Written,
    meant: RowsSum,
) -> Result<(), ArchiveError> {
    let sha256 = store.read(path)?.digest().map_err(|e| StoreError::io(Verb::Read, path, e))?;
    if sha256 != written.sha256 {
        let (found, expected) = (sha256.to_string(), written.sha256.to_string());
        return Err(ArchiveError::ReadBack { path: path.to_owned(), found, expected });
    }
    let (_, found) = digest_file(store, path, dataset, salts)?;
    compare(path, found?, meant)
}

pub(super) fn compare(path: &str, found: RowsSum, expected: RowsSum) -> Result<(), ArchiveError> {
    if found == expected {
        return Ok(());
    }
    let say = |RowsSum { rows, digest }| format!("{rows} rows with digest {digest}");
    Err(ArchiveError::ReadBack { path: path.to_owned(), found: say(found), expected: say(expected) })
}

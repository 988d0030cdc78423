//! The first step of a commit: writes files durably, reads them back and compares them before a line names them.

use crate::model::path::DataPath;
use crate::model::{Digest, TeamKey};
use crate::planted::{self, Bug};
use crate::store::{Store, StoreError, Verb};
use crate::threads::each;

use super::planned_file::{MergedRows, PlannedFile};
use crate::archive::ledger::rows_sum::RowsSum;
use crate::archive::random::Nonce;
use crate::archive::salts::Salts;
use crate::archive::table::{MergeInput, TableWriter, Written, digest_file, merge, threads_for};
use crate::archive::{ArchiveError, FileEntry};

/// Writes the files of a team's commit, large ones in parallel, and returns their ledger entries.
pub fn write_all(store: &dyn Store, salts: &Salts, planned: Vec<PlannedFile>) -> Result<Vec<FileEntry>, ArchiveError> {
    let threads = threads_for(planned.iter().map(|file| file.sum().rows));
    // Draw the numbers in order, so that a seeded source gives the same numbers with any number of threads.
    let planned: Vec<(PlannedFile, Nonce)> = planned.into_iter().map(|file| (file, salts.nonce())).collect();
    each(planned, threads, |(file, nonce)| write(store, salts, file, nonce))
}

/// # Errors
/// When the store fails, an input cannot be read, or the file holds other rows than intended.
fn write(store: &dyn Store, salts: &Salts, file: PlannedFile, nonce: Nonce) -> Result<FileEntry, ArchiveError> {
    let sum = file.sum();
    let PlannedFile { dataset, role, start, inputs, rows: MergedRows { batches, drop_ids, .. } } = file;
    let place = DataPath { dataset, team: TeamKey::of(salts.team()), role, start, hash: String::new() };
    let inputs = inputs.into_iter().map(MergeInput::File).chain([MergeInput::Batches(batches)]).collect();
    write_file(store, salts, &place, (sum, nonce), |table| {
        merge(store, inputs, &drop_ids, &mut |batch| table.write(batch))
    })
}

/// Writes one file, makes it durable, reads it back, and returns its ledger entry. `place` lacks the hash. `fill` writes the rows,
/// which must have this sum.
pub fn write_file(
    store: &dyn Store,
    salts: &Salts,
    place: &DataPath,
    (sum, nonce): (RowsSum, Nonce),
    fill: impl FnOnce(&mut TableWriter) -> Result<(), ArchiveError>,
) -> Result<FileEntry, ArchiveError> {
    let dataset = place.dataset;
    let name = |hash: Digest| DataPath { hash: hash.short(), ..place.clone() }.to_string();
    let mut table = TableWriter::create(store, dataset, sum.rows, nonce)?;
    fill(&mut table)?;
    let Written { rows, bytes, sha256, first, last } = table.finish(name)?;
    let (path, role, rows_digest) = (name(sha256), place.role, sum.digest);
    let file = FileEntry { path, dataset, role, rows, bytes, sha256, rows_digest, first, last };
    if !planted::is(Bug::NoReadBack) {
        read_back(store, salts, &file, sum)?;
    }
    Ok(file)
}

/// Reads the whole file again and trusts nothing else: its bytes, and every value.
fn read_back(store: &dyn Store, salts: &Salts, file: &FileEntry, meant: RowsSum) -> Result<(), ArchiveError> {
    let path = file.path.as_str();
    let sha256 = store.read(path)?.digest().map_err(|e| StoreError::io(Verb::Read, path, e))?;
    if sha256 != file.sha256 {
        let (found, expected) = (sha256.to_string(), file.sha256.to_string());
        return Err(ArchiveError::ReadBack { path: path.to_owned(), found, expected });
    }
    let (_, found) = digest_file(store, file, salts)?;
    compare(path, found?, meant)
}

pub fn compare(path: &str, found: RowsSum, expected: RowsSum) -> Result<(), ArchiveError> {
    if found == expected {
        return Ok(());
    }
    let say = |RowsSum { rows, digest }| format!("{rows} rows with digest {digest}");
    Err(ArchiveError::ReadBack { path: path.to_owned(), found: say(found), expected: say(expected) })
}

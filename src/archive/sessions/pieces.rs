//! Builds a session file from its input files. Unchanged large row groups are copied as they are, and the row groups between
//! them are merged. So a session that changes years later rewrites one row group, not a whole year.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;

use crate::model::{ConnectionId, Instant};

use super::super::salts::Salts;
use super::super::store::Store;
use super::super::table::{
    GROUP_ROWS_MIN, Groups, MergeInput, RowsDigest, Spliced, TableWriter, column, digest_rows, merge, times_of,
};
use super::super::{ArchiveError, FileEntry};
use super::change::without;
use super::new_file::SessionsChange;

/// Times of rows in microseconds, both ends included.
type Times = (i64, i64);

/// One row group of an input, or all row groups of a small input.
struct Unit {
    file: usize,
    group: usize,
    times: Times,
    is_large: bool,
}

/// A part of the file that is written in one piece.
enum Piece {
    /// Row groups of an input that are copied unchanged.
    Splice { file: usize, groups: Range<usize>, times: Times },
    /// Row groups by their input, and new rows.
    Merge { groups: BTreeMap<usize, Vec<usize>>, batches: Vec<RecordBatch> },
}

/// An input file.
struct Input {
    entry: FileEntry,
    /// The row groups, if the file is large enough to copy some.
    groups: Option<Groups>,
    /// For a file that is copied in part: the digest of its merged rows, from which the digest of the copied rows follows.
    merged: Option<Merged>,
}

impl Input {
    fn open(store: &dyn Store, entry: FileEntry) -> Result<Self, ArchiveError> {
        let is_large = entry.rows >= GROUP_ROWS_MIN;
        let groups = is_large.then(|| Groups::open(store, &entry.path)).transpose()?;
        Ok(Self { entry, groups, merged: None })
    }

    fn check(mut self, is_spliced: bool, salts: &Salts) -> Result<Self, ArchiveError> {
        if is_spliced {
            self.groups = self.groups.map(|groups| groups.checked(&self.entry)).transpose()?;
            self.merged = Some(Merged::new(salts));
        }
        Ok(self)
    }

    fn merge(&self, groups: Vec<usize>, drop_ids: &Arc<HashSet<ConnectionId>>) -> MergeInput {
        let (drop_ids, merged) = (Arc::clone(drop_ids), self.merged.clone());
        let keep = move |batch: &RecordBatch| {
            merged.iter().try_for_each(|merged| merged.add(batch))?;
            without(batch, &drop_ids)
        };
        MergeInput::Some(self.entry.clone(), self.groups.as_ref().map(|_| groups), Arc::new(keep))
    }
}

impl SessionsChange {
    /// Writes the rows of the new file, and returns the row groups that come from its inputs.
    ///
    /// # Errors
    /// When an input cannot be read or differs from the ledger, or the file cannot be written.
    pub fn write(
        self,
        store: &dyn Store,
        table: &mut TableWriter,
        salts: &Salts,
    ) -> Result<Vec<Spliced>, ArchiveError> {
        let Self { inputs, drop_ids, batches, changed, .. } = self;
        let inputs = inputs.into_iter().map(|entry| Input::open(store, entry)).collect::<Result<Vec<_>, _>>()?;
        let pieces = pieces(units(&inputs, &changed), batches)?;
        let is_spliced =
            |at: usize| pieces.iter().any(|piece| matches!(piece, Piece::Splice { file, .. } if *file == at));
        let checked = inputs.into_iter().enumerate().map(|(at, input)| input.check(is_spliced(at), salts));
        let inputs = checked.collect::<Result<Vec<_>, _>>()?;
        let drop_ids = Arc::new(drop_ids);
        let mut spliced: Vec<(usize, Spliced)> = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Splice { file, groups, times } => {
                    let of_file = inputs[file].groups.as_ref().expect("BUG: only row groups are spliced");
                    let rows = groups.clone().map(|group| of_file.rows_of(group)).sum();
                    let groups = of_file.only(groups);
                    let at = table.splice(&groups, (instant(times.0), instant(times.1)))?;
                    spliced.push((file, Spliced { at, groups, rows, digest: RowsDigest::default() }));
                }
                Piece::Merge { groups, batches } => {
                    let some = groups.into_iter().map(|(file, groups)| inputs[file].merge(groups, &drop_ids));
                    let inputs = some.chain([MergeInput::Batches(batches)]).collect();
                    merge(store, inputs, &mut |batch| table.write(batch))?;
                }
            }
        }
        for (at, input) in inputs.iter().enumerate() {
            let first = spliced.iter_mut().find(|(file, _)| *file == at);
            if let (Some(merged), Some((_, first))) = (&input.merged, first) {
                first.digest = RowsDigest::from(input.entry.rows_digest).less(merged.digest());
            }
        }
        Ok(spliced.into_iter().map(|(_, spliced)| spliced).collect())
    }
}

/// The digest of the rows that were read from an input for merging.
#[derive(Clone)]
struct Merged {
    digest: Arc<Mutex<RowsDigest>>,
    salts: Salts,
}

impl Merged {
    fn new(salts: &Salts) -> Self {
        Self { digest: Arc::default(), salts: salts.clone() }
    }

    fn add(&self, batch: &RecordBatch) -> Result<(), ArchiveError> {
        let digest = digest_rows(batch, &self.salts).map_err(|e| bad(e.to_string()))?;
        let mut held = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        *held = held.plus(digest);
        Ok(())
    }

    fn digest(&self) -> RowsDigest {
        *self.digest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The row groups of the inputs, sorted by time, and whether each can be copied. `changed` are the times of dropped and new
/// rows.
fn units(inputs: &[Input], changed: &[i64]) -> Vec<(Unit, bool)> {
    let mut units: Vec<Unit> = Vec::new();
    for (file, Input { entry, groups, .. }) in inputs.iter().enumerate() {
        let of_file = entry.first.zip(entry.last).map(|(first, last)| (first.micros(), last.micros()));
        let of_file = of_file.unwrap_or((i64::MIN, i64::MAX));
        let Some(groups) = groups else {
            units.push(Unit { file, group: 0, times: of_file, is_large: false });
            continue;
        };
        for group in groups.numbers() {
            let times = groups.times_of(group, column::FIRST_EVENT_AT).unwrap_or(of_file);
            units.push(Unit { file, group, times, is_large: groups.rows_of(group) >= GROUP_ROWS_MIN });
        }
    }
    units.sort_by_key(|unit| (unit.times.0, unit.file, unit.group));
    let stay = stay(&units, changed);
    units.into_iter().zip(stay).collect()
}

/// Which row groups, sorted by time, can be copied.
fn stay(units: &[Unit], changed: &[i64]) -> Vec<bool> {
    // A row between two row groups goes into the earlier one: alone, it would make a tiny row group.
    let before = |time: i64| units.partition_point(|unit| unit.times.0 <= time).saturating_sub(1);
    let touched: BTreeSet<usize> = changed.iter().map(|time| before(*time)).collect();
    let stays = |(at, unit): (usize, &Unit)| {
        let (first, last) = unit.times;
        let overlaps = |other: &Unit| other.file != unit.file && first <= other.times.1 && other.times.0 <= last;
        unit.is_large
            && !touched.contains(&at)
            && !changed.iter().any(|time| (first..=last).contains(time))
            && !units.iter().any(overlaps)
    };
    units.iter().enumerate().map(stays).collect()
}

/// The parts, sorted by time. `batches` are sorted new rows; none lies within a copied row group.
fn pieces(units: Vec<(Unit, bool)>, batches: Vec<RecordBatch>) -> Result<Vec<Piece>, ArchiveError> {
    let mut batches = VecDeque::from(batches);
    let mut pieces: Vec<Piece> = Vec::new();
    let mut between: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (unit, stays) in units {
        if !stays {
            between.entry(unit.file).or_default().push(unit.group);
            continue;
        }
        let batches = rows_before(&mut batches, unit.times.0)?;
        if !between.is_empty() || !batches.is_empty() {
            pieces.push(Piece::Merge { groups: std::mem::take(&mut between), batches });
        }
        match pieces.last_mut() {
            Some(Piece::Splice { file, groups, times }) if *file == unit.file && groups.end == unit.group => {
                (groups.end, times.1) = (unit.group + 1, unit.times.1.max(times.1));
            }
            _ => pieces.push(Piece::Splice { file: unit.file, groups: unit.group..unit.group + 1, times: unit.times }),
        }
    }
    if !between.is_empty() || !batches.is_empty() {
        pieces.push(Piece::Merge { groups: between, batches: batches.into() });
    }
    Ok(pieces)
}

/// Removes and returns the rows whose time is before `micros`.
fn rows_before(batches: &mut VecDeque<RecordBatch>, micros: i64) -> Result<Vec<RecordBatch>, ArchiveError> {
    let mut before = Vec::new();
    while let Some(batch) = batches.pop_front() {
        let times = times_of(&batch).map_err(bad)?;
        let count = times.values().partition_point(|time| time.div_euclid(1_000) < micros);
        if count > 0 {
            before.push(batch.slice(0, count));
        }
        if count < batch.num_rows() {
            batches.push_front(batch.slice(count, batch.num_rows() - count));
            break;
        }
    }
    Ok(before)
}

fn instant(micros: i64) -> Instant {
    Instant::from_nanos(micros.saturating_mul(1_000))
}

fn bad(detail: String) -> ArchiveError {
    ArchiveError::Table { path: "merged sessions".to_owned(), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row groups by file and times, and the times of changed rows: which groups are copied.
    #[test]
    fn unchanged_row_groups_are_copied() {
        let three = [(0, 10, 19), (0, 20, 29), (0, 30, 39)];
        let months = [(0, 10, 19), (1, 20, 29), (2, 30, 39)];
        for (scenario, units, changed, expected) in [
            ("months of a year", &months[..], &[][..], [true; 3]),
            ("a row goes or comes", &three, &[25], [true, false, true]),
            ("at its first time", &three, &[30], [true, true, false]),
            ("at its last time", &three, &[19], [false, true, true]),
            ("between two", &[(0, 10, 15), (0, 20, 29), (0, 30, 39)], &[17], [false, true, true]),
            ("before all", &three, &[3], [false, true, true]),
            ("after all", &three, &[99], [true, true, false]),
            ("in two", &three, &[11, 35], [false, true, false]),
            ("of one time with the next", &[(0, 10, 20), (0, 20, 29), (0, 30, 39)], &[20], [false, false, true]),
            ("of one time, unchanged", &[(0, 10, 20), (0, 20, 30), (0, 30, 39)], &[], [true; 3]),
            ("files that overlap", &[(0, 10, 21), (1, 20, 29), (2, 30, 39)], &[], [false, false, true]),
            ("files that touch", &[(0, 10, 20), (1, 20, 29), (2, 30, 39)], &[], [false, false, true]),
            ("a file within another", &[(0, 10, 39), (1, 20, 29), (2, 40, 49)], &[], [false, false, true]),
        ] {
            let unit = |(file, first, last): &(usize, i64, i64)| Unit {
                file: *file,
                group: usize::try_from(*first).unwrap(),
                times: (*first, *last),
                is_large: true,
            };
            let mut units: Vec<Unit> = units.iter().map(unit).collect();
            assert_eq!(stay(&units, changed), expected, "{scenario}");
            units.iter_mut().for_each(|unit| unit.is_large = false);
            assert_eq!(stay(&units, changed), [false; 3], "{scenario}, small");
        }
    }
}

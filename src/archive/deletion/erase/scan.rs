//! Finds the rows that hold the subject.

use crate::store::{Store, Unerased};
use arrow::array::{Array, RecordBatch, StringArray};

use crate::model::path::{DataPath, SCRATCH};
use crate::model::{Dataset, Instant};

use super::eraser::{Changed, Eraser};
use super::{ErasedPart, Order, Subject};
use crate::archive::deletion::vacuum::{removed_with_versions, unnamed};
use crate::archive::ledger::state::TeamState;
use crate::archive::salts::{Salt, Salts};
use crate::archive::table::{Selection, TableReader, column, column_of, digest_rows, times_of};
use crate::archive::{ArchiveError, FileEntry, TeamReader};

/// A row that holds the subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundRow {
    pub dataset: Dataset,
    pub time: Option<Instant>,
    /// The id of the event, the connection or the inventory item. It can be a value of the subject.
    pub id: String,
}

impl ErasedPart {
    /// The changes in a batch of a file.
    pub(super) fn new(dataset: Dataset, changed: &Changed, salts: &Salts) -> Result<Self, String> {
        let times = times_of(&changed.before)?;
        let times = || times.iter().flatten().map(Instant::from_nanos);
        Ok(Self {
            dataset,
            files: 0,
            rows: changed.before.num_rows() as u64,
            erased_digest: digest_rows(&changed.before, salts)?.digest,
            replaced_digest: digest_rows(&changed.after, salts)?.digest,
            first: times().min(),
            last: times().max(),
        })
    }

    /// The changes of both.
    pub(super) fn plus(self, other: Self) -> Self {
        let erased = self.erased().plus(other.erased());
        Self {
            dataset: self.dataset,
            files: self.files + other.files,
            rows: erased.rows,
            erased_digest: erased.digest,
            replaced_digest: self.replaced().plus(other.replaced()).digest,
            first: [self.first, other.first].into_iter().flatten().min(),
            last: self.last.max(other.last),
        }
    }
}

/// Calls `take` for each batch of a file that holds the subject.
pub(super) fn changes(
    store: &dyn Store,
    (path, dataset): (&str, Dataset),
    eraser: &Eraser<'_>,
    take: &mut dyn FnMut(Changed) -> Result<(), String>,
) -> Result<(), ArchiveError> {
    let reader = TableReader::open(store, path, dataset, Selection::default())?;
    reader.each(|batch| eraser.rows(dataset, &batch)?.map_or(Ok(()), &mut *take))
}

/// The changes of a file; `None` if it does not hold the subject. Passes the rows that hold the subject to `take`.
pub(super) fn part_of(
    store: &dyn Store,
    file: &FileEntry,
    eraser: &Eraser<'_>,
    salts: &Salts,
    take: &mut dyn FnMut(&RecordBatch) -> Result<(), String>,
) -> Result<Option<ErasedPart>, ArchiveError> {
    let mut part: Option<ErasedPart> = None;
    changes(store, (&file.path, file.dataset), eraser, &mut |changed| {
        take(&changed.before)?;
        let new = ErasedPart::new(file.dataset, &changed, salts)?;
        part = part.into_iter().chain([new]).reduce(ErasedPart::plus);
        Ok(())
    })?;
    Ok(part.map(|part| ErasedPart { files: 1, ..part }))
}

/// The removed files that a bucket keeps as older versions, and why it does not show them.
pub(super) fn older_versions(
    store: &dyn Store,
    state: &TeamState,
) -> Result<(Vec<String>, Option<Unerased>), ArchiveError> {
    match removed_with_versions(store, state) {
        Err(ArchiveError::Store(error)) => {
            Ok((Vec::new(), Some(Unerased { path: "older versions".to_owned(), why: error.to_string() })))
        }
        removed => Ok((removed?, None)),
    }
}

impl TeamReader {
    /// The rows that hold the subject of an order, file by file, and the number of all rows.
    pub fn rows_of_subject(&self, order: &Order) -> Result<(Vec<FoundRow>, u64), ArchiveError> {
        let (store, state) = (self.store(), self.state());
        let eraser = Eraser::new(order, Salt([0; 32]));
        let (mut found, mut rows) = (Vec::new(), 0);
        for file in Dataset::ALL.iter().flat_map(|dataset| state.files_of(*dataset)) {
            rows += file.rows;
            changes(store, (&file.path, file.dataset), &eraser, &mut |changed| {
                found.extend(found_rows(file.dataset, &changed.before)?);
                Ok(())
            })?;
        }
        Ok((found, rows))
    }

    /// The number of unnamed files that hold the subject of an order or cannot be searched, and the foreign entries. A bucket can keep
    /// removed files as older versions, which no search reads.
    pub fn unnamed_files_of_subject(&self, order: &Order) -> Result<(usize, Vec<Unerased>), ArchiveError> {
        let (store, state) = (self.store(), self.state());
        let eraser = Eraser::new(order, Salt([0; 32]));
        let may_hold = |path: &str| match DataPath::parse(path) {
            Some(data) => changes(store, (path, data.dataset), &eraser, &mut |_| Err("found".to_owned())).is_err(),
            None => path.starts_with(SCRATCH),
        };
        let (files, mut foreign) = unnamed(store, state)?;
        let (removed, unknown) = older_versions(store, state)?;
        foreign.extend(unknown);
        Ok((files.iter().filter(|entry| may_hold(&entry.path)).count() + removed.len(), foreign))
    }

    /// Whether the ledger records an order of this name for another subject.
    ///
    /// # Errors
    /// When the key of the ledger's digests is lost.
    pub fn order_is_of_another(&self, order: &str, subject: &Subject) -> Result<bool, ArchiveError> {
        let state = self.state();
        let mut held = state.erased.iter().filter(|(_, record)| record.order == order).peekable();
        if held.peek().is_none() {
            return Ok(false);
        }
        let subjects = subject.digests(&self.salts().key()?);
        Ok(held.any(|(_, record)| record.subjects != subjects))
    }

    /// Whether ledger lines name the subject, as a computer or as the reviewer of a pack. No erasure changes lines.
    pub fn named_in_ledger(&self, subject: &Subject) -> bool {
        let state = self.state();
        let computers = state.devices_ever.iter().any(|device| subject.find(device.as_str()).is_some());
        let findings = state.findings.iter().any(|(_, finding)| subject.find(&finding.subject).is_some());
        computers || findings || state.reviews.iter().any(|(_, review)| subject.find(&review.reviewer).is_some())
    }
}

fn found_rows(dataset: Dataset, rows: &RecordBatch) -> Result<Vec<FoundRow>, String> {
    let times = times_of(rows)?;
    let names: &[&str] = match dataset {
        Dataset::Sessions => &[column::CONNECTION_ID],
        Dataset::Inventory(part) => part.keys(),
        _ => &[column::EVENT_ID],
    };
    let ids = names.iter().map(|name| column_of::<StringArray>(rows, name)).collect::<Result<Vec<_>, _>>()?;
    let row = |at: usize| FoundRow {
        dataset,
        time: times.is_valid(at).then(|| Instant::from_nanos(times.value(at))),
        id: ids.iter().map(|column| column.value(at)).collect::<Vec<_>>().join(" "),
    };
    Ok((0..rows.num_rows()).map(row).collect())
}

//! The sessions that expire with months of connections.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;

use crate::model::path::month_of;
use crate::model::{Dataset, Digest, Instant, Range, SessionRow};
use crate::store::Store;

use super::super::salts::Salts;
use super::super::table::{Selection, TableReader, digest_rows, session_rows};
use super::super::{ArchiveError, FileEntry};
use crate::archive::ledger::rows_sum::RowsSum;
use crate::archive::ledger::state::TeamState;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpiringMonth {
    /// The number of files that contain only expired rows and start in this month.
    pub files: u64,
    pub sum: RowsSum,
}

/// The expired sessions, by month: see [`TeamState::month_of_session`].
#[derive(Debug, Default)]
pub struct ExpiringSessions {
    pub months: BTreeMap<Instant, ExpiringMonth>,
    /// Files that contain only expired rows.
    pub files: Vec<String>,
    /// The expired rows of files that also contain other rows.
    pub replaced: BTreeMap<String, Vec<SessionRow>>,
    /// The period of the expired sessions' events that stay.
    pub rest: Option<Range>,
}

/// The sessions that expire with `months`. Without `salts`, the rows are counted but have no digests.
pub fn expiring_sessions(
    store: &dyn Store,
    state: &TeamState,
    salts: Option<&Salts>,
    months: &BTreeSet<Instant>,
) -> Result<ExpiringSessions, ArchiveError> {
    let mut gone = ExpiringSessions::default();
    for file in state.files_of(Dataset::Sessions) {
        let Some((first, last)) = file.first.zip(file.last) else { continue };
        let (first, last) = (state.month_of_session(first), state.month_of_session(last));
        if months.iter().any(|month| (first..=last).contains(month)) {
            gone.read((store, state), salts, months, file, is_whole(months, first, last))?;
        }
    }
    Ok(gone)
}

/// Whether `months` contains every month from `first` to `last`.
fn is_whole(months: &BTreeSet<Instant>, first: Instant, last: Instant) -> bool {
    let mut month = first;
    while months.contains(&month) {
        if month == last {
            return true;
        }
        month = month_of(month).end;
    }
    false
}

impl ExpiringSessions {
    fn read(
        &mut self,
        (store, state): (&dyn Store, &TeamState),
        salts: Option<&Salts>,
        months: &BTreeSet<Instant>,
        file: &FileEntry,
        is_whole: bool,
    ) -> Result<(), ArchiveError> {
        let mut replaced = Vec::new();
        TableReader::open(store, &file.path, file.dataset, Selection::default())?.each(|batch| {
            let rows = session_rows(&batch)?;
            let of: Vec<Instant> = rows.iter().map(|row| state.month_of_session(row.first_event_at)).collect();
            for month in of.iter().collect::<BTreeSet<_>>().into_iter().filter(|month| months.contains(month)) {
                let is_of: BooleanArray = of.iter().map(|other| Some(other == month)).collect();
                let some = filter_record_batch(&batch, &is_of).map_err(|e| e.to_string())?;
                let uncounted = || Ok(RowsSum::new(some.num_rows() as u64, Digest::default()));
                let sum = salts.map_or_else(uncounted, |salts| digest_rows(&some, salts))?;
                let gone = self.months.entry(*month).or_default();
                gone.sum = gone.sum.plus(sum);
            }
            for (row, month) in rows.into_iter().zip(of).filter(|(_, month)| months.contains(month)) {
                self.note_rest(months, &row, month);
                if !is_whole {
                    replaced.push(row);
                }
            }
            Ok(())
        })?;
        if is_whole {
            self.files.push(file.path.clone());
            let begins = file.first.map(|first| state.month_of_session(first));
            if let Some(gone) = begins.and_then(|month| self.months.get_mut(&month)) {
                gone.files += 1;
            }
        } else if !replaced.is_empty() {
            self.replaced.insert(file.path.clone(), replaced);
        }
        Ok(())
    }

    /// Notes the period of the session's remaining events: a new session is derived from them.
    fn note_rest(&mut self, months: &BTreeSet<Instant>, row: &SessionRow, month: Instant) {
        // Files store microseconds.
        let end = Instant::from_micros(row.last_event_at.micros().saturating_add(1));
        let mut start = month_of(month).end;
        while months.contains(&start) {
            start = month_of(start).end;
        }
        if start < end {
            let held = self.rest.get_or_insert(Range::new(start, end));
            *held = Range::new(held.start.min(start), held.end.max(end));
        }
    }
}

//! The partition of a session: open sessions share one file. Finished sessions are stored by the month of their first event, and
//! by its year after the files of its months were joined.
//!
//! A year's file has the same path as its January file would have. The ledger's times distinguish them: the year's file holds
//! sessions beyond the month in its path.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::path::{DataPath, month_of, year_of};
use crate::model::{Dataset, FileRole, Instant, Range, Stream};

use super::super::FileEntry;
use super::super::table::GROUP_ROWS_MAX;
use crate::archive::ledger::state::TeamState;

/// Larger files remain when their month is sealed. Opening one more file costs a query less than reading it, and joining
/// them would encode every session of a backfill twice.
pub const LARGE_ROWS: u64 = 8_192;
/// When a month gains a new file, it also takes in the month's smaller files.
pub const SMALL_ROWS: u64 = 4096;
/// Larger files remain when their year ends: their row groups have the maximum size already.
const JOINED_ROWS_MAX: u64 = GROUP_ROWS_MAX as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionPartition {
    Open,
    /// By the month's first instant.
    Month(Instant),
    /// By the year's first instant.
    Year(Instant),
}

/// The years whose sessions share a file.
pub struct JoinedYears(BTreeSet<Instant>);

impl JoinedYears {
    /// `files` are session files; `joining` are years that are being joined.
    pub fn of<'a>(files: impl Iterator<Item = &'a FileEntry>, joining: &[Range]) -> Self {
        let paths = files.filter(|file| is_of_year(file)).filter_map(|file| DataPath::parse(&file.path));
        let joined = paths.map(|data| year_of(data.start).start);
        Self(joined.chain(joining.iter().map(|year| year.start)).collect())
    }

    /// The partition of a finished session whose first event is at `at`.
    pub fn of_time(&self, at: Instant) -> SessionPartition {
        let year = year_of(at).start;
        if self.0.contains(&year) { SessionPartition::Year(year) } else { SessionPartition::Month(month_of(at).start) }
    }

    pub fn of_file(&self, file: &FileEntry) -> SessionPartition {
        match (file.role, DataPath::parse(&file.path)) {
            (FileRole::Open, _) | (_, None) => SessionPartition::Open,
            (_, Some(data)) => self.of_time(data.start),
        }
    }
}

/// Whether a file holds sessions beyond the month in its path.
fn is_of_year(file: &FileEntry) -> bool {
    let ends = DataPath::parse(&file.path).map(|data| month_of(data.start).end);
    file.role != FileRole::Open && ends.zip(file.last).is_some_and(|(ends, last)| last >= ends)
}

/// Whether a session file becomes part of its year's file.
pub fn is_joined(state: &TeamState, file: &FileEntry) -> bool {
    let is_sealed = |data: DataPath| state.is_month_sealed(Stream::Connections, data.start);
    file.role != FileRole::Open
        && file.rows < JOINED_ROWS_MAX
        && (is_of_year(file) || DataPath::parse(&file.path).is_some_and(is_sealed))
}

impl TeamState {
    /// Calendar years whose session files should become one: their last month is sealed, and more than one of their files is
    /// large or holds a whole month.
    pub fn years_to_join(&self) -> Vec<Range> {
        let mut years: BTreeMap<Instant, usize> = BTreeMap::new();
        let joined = self.files_of(Dataset::Sessions).filter(|file| is_joined(self, file));
        let whole = joined.filter(|file| file.role == FileRole::Month || file.rows >= LARGE_ROWS);
        for data in whole.filter_map(|file| DataPath::parse(&file.path)) {
            *years.entry(year_of(data.start).start).or_default() += 1;
        }
        let is_over = |year: &Range| {
            let last = Instant::from_nanos(year.end.nanos() - 1);
            self.is_month_sealed(Stream::Connections, last)
        };
        let several = years.into_iter().filter(|(_, files)| *files > 1);
        several.map(|(start, _)| year_of(start)).filter(is_over).collect()
    }
}

//! Where sessions stand: the open ones in one file; the others by the month of their first event, or, once the files of its
//! months have become one, by its year.
//!
//! The file of a year stands where the one of its January would. What tells it from that one is what the ledger says of its
//! times: it holds sessions of more than the month that its path names.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Instant, Range, Stream};

use super::super::path::{DataPath, month_of, year_of};
use super::super::state::TeamState;
use super::super::table::GROUP_ROWS_MAX;
use super::super::{Dataset, FileEntry, FileRole};

/// Larger files stay what they are when their month is sealed: a question takes longer to read one than to open it, and
/// making one of them would encode every session of a backfill twice.
pub const LARGE_ROWS: u64 = 8_192;
/// Smaller files of a month go up in the next one that the month gains.
pub const SMALL_ROWS: u64 = 4096;
/// Larger files stay what they are when their year is over: their row groups are as large as they get.
const JOINED_ROWS_MAX: u64 = GROUP_ROWS_MAX as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Open,
    /// By its first instant.
    Month(Instant),
    /// By its first instant.
    Year(Instant),
}

/// Which years stand together.
pub struct Places(BTreeSet<Instant>);

impl Places {
    /// `files`: those of sessions. `joining`: years that come to stand together.
    pub fn of<'a>(files: impl Iterator<Item = &'a FileEntry>, joining: &[Range]) -> Self {
        let places = files.filter(|file| is_of_year(file)).filter_map(|file| DataPath::parse(&file.path));
        let joined = places.map(|data| year_of(data.start).start);
        Self(joined.chain(joining.iter().map(|year| year.start)).collect())
    }

    /// Where a session stands, at rest, whose first event is of `at`.
    pub fn of_time(&self, at: Instant) -> Place {
        let year = year_of(at).start;
        if self.0.contains(&year) { Place::Year(year) } else { Place::Month(month_of(at).start) }
    }

    pub fn of_file(&self, file: &FileEntry) -> Place {
        match (file.role, DataPath::parse(&file.path)) {
            (FileRole::Open, _) | (_, None) => Place::Open,
            (_, Some(data)) => self.of_time(data.start),
        }
    }
}

/// Whether a file holds sessions of more than the month that its path names.
fn is_of_year(file: &FileEntry) -> bool {
    let ends = DataPath::parse(&file.path).map(|data| month_of(data.start).end);
    file.role != FileRole::Open && ends.zip(file.last).is_some_and(|(ends, last)| last >= ends)
}

/// Whether a file of sessions goes up in the one of its year.
pub fn is_joined(state: &TeamState, file: &FileEntry) -> bool {
    let is_sealed = |data: DataPath| state.is_month_sealed(Stream::Connections, data.start);
    file.role != FileRole::Open
        && file.rows < JOINED_ROWS_MAX
        && (is_of_year(file) || DataPath::parse(&file.path).is_some_and(is_sealed))
}

impl TeamState {
    /// Calendar years whose sessions are to become one file: their last month is sealed, and of the files that would go up in
    /// it, several are more than what a sealed month gained.
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

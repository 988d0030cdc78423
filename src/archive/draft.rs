//! What the pipeline asks to be committed: rows and records, before files exist.

use std::collections::BTreeMap;

use crate::model::{EventRow, Instant, InventoryPart, InventoryRow, Range, RejectRow, SessionRow, Stream};

use super::record::{DeviceDelta, Finding, InventoryRead, ReadPoint, SessionsMark, StreamRecord, WindowRecord};
use super::{EncodedTable, EventColumns, ReviewRecord, SessionColumns};

/// New rows of one window, and whether the window's live files become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRows {
    pub stream: Stream,
    pub window: Range,
    /// Rows that the archive does not hold yet; any order.
    pub rows: Vec<EventRow>,
    /// More such rows, made columns before; any order.
    pub columns: Vec<EventColumns>,
    /// The file that all of these rows become, where it was encoded before.
    pub encoded: Option<EncodedTable>,
    /// True when this commit settles the window: its parts and these rows become one file.
    pub compact: bool,
}

impl WindowRows {
    pub fn new(stream: Stream, window: Range, rows: Vec<EventRow>, compact: bool) -> Self {
        Self { stream, window, rows, columns: Vec::new(), encoded: None, compact }
    }

    /// How many rows they are.
    pub fn count(&self) -> usize {
        self.rows.len() + self.columns.iter().map(EventColumns::count).sum::<usize>()
    }

    /// The times of the first row and of the last.
    pub fn times(&self) -> Option<(Instant, Instant)> {
        let of_rows = self.rows.iter().map(|row| (row.time, row.time));
        let times = of_rows.chain(self.columns.iter().map(EventColumns::times));
        times.reduce(|all, some| (all.0.min(some.0), all.1.max(some.1)))
    }

    /// Makes columns rows, where each is to be looked at.
    pub fn spread(&mut self) {
        self.encoded = None;
        for columns in std::mem::take(&mut self.columns) {
            self.rows.extend(columns.to_rows());
        }
    }
}

/// Sessions made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsDraft {
    /// What they say after this commit.
    pub mark: SessionsMark,
    /// All sessions that the archive holds are dropped first.
    pub is_anew: bool,
    /// Those to which more events are waited for; any order.
    pub open: Vec<SessionRow>,
    pub resting: Vec<SessionRow>,
    /// More of those at rest, made columns before.
    pub columns: Vec<SessionColumns>,
    /// Rows that these replace, exactly as they stand, by the path of their file.
    pub replaced: BTreeMap<String, Vec<SessionRow>>,
}

/// What becomes of one file of quarantined events, all of whose rows stand here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The live file.
    pub path: String,
    /// Events that this commit brings as rows; they leave quarantine.
    pub released: Vec<RejectRow>,
    pub kept: Vec<RejectRow>,
}

/// One commit in the making. Checked as a whole against the state, then written as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    pub rows: Vec<WindowRows>,
    pub rejects: Vec<RejectRow>,
    /// Quarantined events that are among the rows of this commit; a file once.
    pub releases: Vec<Release>,
    pub windows: Vec<WindowRecord>,
    pub streams: Vec<(Stream, StreamRecord)>,
    /// Read points that streams gain, behind those of their records.
    pub read_points: Vec<(Stream, ReadPoint)>,
    pub devices: DeviceDelta,
    pub findings: Vec<Finding>,
    /// Months (the first instant of each) whose windows are all sealed: their files become one.
    pub seal_months: Vec<(Stream, Range)>,
    /// Days whose windows are all sealed, of months that are not: their files become one as well.
    pub seal_days: Vec<(Stream, Range)>,
    /// Files of settled windows of one month that become one, so that a quiet team has few files: their paths.
    pub join_windows: Vec<(Stream, Vec<String>)>,
    /// Calendar years whose files of sessions become one: see [`TeamState::years_to_join`](super::TeamState::years_to_join).
    pub join_years: Vec<Range>,
    /// Sessions that the rows touch, as they are with these.
    pub sessions: Option<SessionsDraft>,
    /// New rows of the inventory, each later than every row of its part that the archive holds; a part once.
    pub inventory: Vec<(InventoryPart, Vec<InventoryRow>)>,
    pub inventory_reads: Vec<InventoryRead>,
    /// Packs of reports that somebody looked at.
    pub reviews: Vec<ReviewRecord>,
}

impl Draft {
    /// A round that brought nothing writes nothing.
    pub fn is_empty(&self) -> bool {
        self == &Draft::default()
    }
}

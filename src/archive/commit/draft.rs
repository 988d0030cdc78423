//! The input of a commit: rows and records, before files exist.

use std::collections::BTreeMap;

use crate::model::{EventRow, Instant, InventoryPart, InventoryRow, Range, RejectRow, SessionRow, Stream};

use crate::archive::ledger::record::{Body, SessionsMark};

/// New rows of one window, and whether the commit compacts the window's live files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRows {
    pub stream: Stream,
    pub window: Range,
    /// Rows that the archive does not hold yet, in any order.
    pub rows: Vec<EventRow>,
    /// True if this commit settles the window: its parts and these rows become one file.
    pub compact: bool,
}

impl WindowRows {
    pub fn new(stream: Stream, window: Range, rows: Vec<EventRow>, compact: bool) -> Self {
        Self { stream, window, rows, compact }
    }

    /// The times of the first row and of the last row.
    pub fn times(&self) -> Option<(Instant, Instant)> {
        let times = || self.rows.iter().map(|row| row.time);
        times().min().zip(times().max())
    }
}

/// Recomputed sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsDraft {
    /// The mark of the sessions after this commit.
    pub mark: SessionsMark,
    /// The commit drops all archived sessions first.
    pub is_anew: bool,
    /// Sessions that can still receive events, in any order.
    pub open: Vec<SessionRow>,
    pub finished: Vec<SessionRow>,
    /// The archived rows that these sessions replace, by the path of their file.
    pub replaced: BTreeMap<String, Vec<SessionRow>>,
}

/// Splits one file of quarantined events into released and kept rows; together they are all rows of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The path of the live file.
    pub path: String,
    /// Events that this commit adds as rows; they leave quarantine.
    pub released: Vec<RejectRow>,
    pub kept: Vec<RejectRow>,
}

/// The input of one commit. The writer checks all of it against the state, then writes all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    /// The records of the line. The writer itself adds what the line says of files, session rows, released rows and salts.
    pub body: Body,
    pub rows: Vec<WindowRows>,
    pub rejects: Vec<RejectRow>,
    /// Quarantined events that become rows in this commit; each file at most once.
    pub releases: Vec<Release>,
    /// Paths of settled windows' files of one month that become one file, so that a quiet team has few files.
    pub join_windows: Vec<(Stream, Vec<String>)>,
    /// Calendar years whose session files become one: see [`TeamState::years_to_join`](crate::archive::TeamState::years_to_join).
    pub join_years: Vec<Range>,
    /// The sessions that the new rows change.
    pub sessions: Option<SessionsDraft>,
    /// New inventory rows, each later than all archived rows of its part; each part at most once.
    pub inventory: Vec<(InventoryPart, Vec<InventoryRow>)>,
    /// Session files that expire with the months of the body.
    pub expired_sessions: Vec<String>,
}

/// A draft of records alone.
impl From<Body> for Draft {
    fn from(body: Body) -> Self {
        Self { body, ..Self::default() }
    }
}

impl Draft {
    /// Whether the commit would write nothing.
    pub fn is_empty(&self) -> bool {
        self == &Draft::default()
    }
}

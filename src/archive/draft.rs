//! What the pipeline asks to be committed: rows and records, before files exist.

use crate::model::{EventRow, Range, RejectRow, Stream};

use super::record::{DeviceDelta, Finding, StreamRecord, WindowRecord};

/// New rows of one window, and whether the window's live files become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRows {
    pub stream: Stream,
    pub window: Range,
    /// Rows that the archive does not hold yet; any order.
    pub rows: Vec<EventRow>,
    /// True when this commit settles the window: its parts and these rows become one file.
    pub compact: bool,
}

/// One commit in the making. Checked as a whole against the state, then written as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    pub rows: Vec<WindowRows>,
    pub rejects: Vec<RejectRow>,
    pub windows: Vec<WindowRecord>,
    pub streams: Vec<(Stream, StreamRecord)>,
    pub devices: DeviceDelta,
    pub findings: Vec<Finding>,
    /// Months (the first instant of each) whose windows are all sealed: their files become one in `data/`.
    pub seal_months: Vec<(Stream, Range)>,
}

impl Draft {
    /// A round that brought nothing writes nothing.
    pub fn is_empty(&self) -> bool {
        self == &Draft::default()
    }
}

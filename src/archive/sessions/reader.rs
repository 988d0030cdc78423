//! Reads sessions and the events that they are made from.

use std::collections::HashMap;

use crate::model::{ConnectionId, EventRow, Range};

use super::super::ArchiveError;
use super::super::reader::{connection_columns, connection_rows};
use super::super::state::TeamState;
use super::super::store::Store;
use super::super::table::ConnectionColumns;
use super::{HeldSession, Lookup};

/// Reads sessions, and the events that they are made from.
pub struct SessionsReader<'a> {
    pub(in super::super) store: &'a dyn Store,
    pub(in super::super) state: &'a TeamState,
    pub(in super::super) lookup: &'a mut Lookup,
}

impl SessionsReader<'_> {
    /// See [`Lookup::open`].
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn open(&self) -> Result<Vec<HeldSession>, ArchiveError> {
        Lookup::open(self.store, self.state)
    }

    /// See [`Lookup::resting`].
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn resting(&mut self, ids: &[&ConnectionId]) -> Result<Vec<HeldSession>, ArchiveError> {
        self.lookup.resting(self.store, self.state, ids)
    }

    /// See [`connection_rows`].
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn events_of(&self, wanted: &HashMap<ConnectionId, Range>) -> Result<Vec<EventRow>, ArchiveError> {
        connection_rows(self.store, self.state, wanted)
    }

    /// See [`connection_columns`].
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn events_in(&self, range: Range) -> Result<Vec<ConnectionColumns>, ArchiveError> {
        connection_columns(self.store, self.state, range)
    }
}

//! Reads sessions and the events that they are made from.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{ConnectionId, EventRow, Range};

use super::super::ArchiveError;
use super::super::reader::{connection_columns, connection_rows};
use super::super::salts::Salts;
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

/// An owned [`SessionsReader`] on a past state of the archive, for another thread.
pub struct DetachedSessions {
    store: Arc<dyn Store>,
    state: TeamState,
    lookup: Lookup,
    salts: Salts,
}

impl DetachedSessions {
    pub(in super::super) fn new(store: Arc<dyn Store>, state: TeamState, lookup: Lookup, salts: Salts) -> Self {
        Self { store, state, lookup, salts }
    }

    /// The salts of the team's rows.
    pub fn salts(&self) -> &Salts {
        &self.salts
    }

    /// The state of the archive at the time of its creation.
    pub fn state(&self) -> &TeamState {
        &self.state
    }

    pub fn reader(&mut self) -> SessionsReader<'_> {
        SessionsReader { store: self.store.as_ref(), state: &self.state, lookup: &mut self.lookup }
    }

    pub(in super::super) fn into_lookup(self) -> Lookup {
        self.lookup
    }
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

//! What sessions are made of, as it stands at one line of the ledger.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{ConnectionId, EventRow, Range};

use super::super::reader::{connection_columns, connection_rows, may_hold};
use super::super::state::TeamState;
use super::super::store::Store;
use super::super::table::ConnectionColumns;
use super::super::{ArchiveError, Dataset};
use super::{HeldSession, Lookup};

/// Reads sessions, and the events that they are made of.
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

/// The archive at one line, from which sessions are made while its writer commits something else.
pub struct SessionsView {
    pub(in super::super) store: Arc<dyn Store>,
    pub(in super::super) state: TeamState,
    pub(in super::super) lookup: Lookup,
}

impl SessionsView {
    pub fn reader(&mut self) -> SessionsReader<'_> {
        SessionsReader { store: self.store.as_ref(), state: &self.state, lookup: &mut self.lookup }
    }

    /// Whether sessions that were made of the events in `range` would come out of `now` as they did: nobody has made others, and
    /// no event was added that they lack.
    pub fn still_tells(&self, range: Range, now: &TeamState) -> bool {
        let files = |state: &TeamState| {
            let events = state.files_of(Dataset::Connections).filter(|file| may_hold(file, range));
            events.chain(state.files_of(Dataset::Sessions)).map(|file| file.path.clone()).collect::<Vec<_>>()
        };
        // An event that is older than all that are waited for is said by `through`.
        let of = |state: &TeamState| state.sessions.map(|mark| (mark.rules, mark.through));
        of(&self.state) == of(now) && files(&self.state) == files(now)
    }

    /// Whether all that it reads is still there.
    pub fn is_live(&self, now: &TeamState) -> bool {
        let read = [Dataset::Connections, Dataset::Sessions].map(|dataset| self.state.files_of(dataset));
        read.into_iter().flatten().all(|file| now.files.contains_key(&file.path))
    }
}

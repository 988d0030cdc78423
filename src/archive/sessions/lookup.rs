//! Finds the archived sessions of some connections.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::{ConnectionId, ConnectionIds, Dataset, FileRole, SessionRow};
use crate::store::Store;

use super::super::table::{ConnectionFilters, Selection, TableReader, by_parts, session_rows};
use super::super::{ArchiveError, FileEntry};
use crate::archive::ledger::state::TeamState;

/// The cache of bloom filters has at most this size; other filters are read again at each lookup.
const FILTER_BYTES_MAX: usize = 32 << 20;

/// Connections that one thread looks up in a filter.
const IDS_A_THREAD: usize = 4_096;

/// An archived session, and the path of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSession {
    pub row: SessionRow,
    pub path: String,
    /// The session can still receive events.
    pub is_open: bool,
}

/// Finds sessions. Files never change, so the filters of a file can be cached.
#[derive(Default)]
pub struct Lookup(Mutex<HashMap<String, ConnectionFilters>>);

impl Lookup {
    pub fn open(
        store: &dyn Store,
        state: &TeamState,
        is_wanted: impl Fn(&SessionRow) -> bool,
    ) -> Result<Vec<HeldSession>, ArchiveError> {
        let mut found = Vec::new();
        for file in state.files_of(Dataset::Sessions).filter(|file| file.role == FileRole::Open) {
            read(store, file, None, &is_wanted, &mut found)?;
        }
        Ok(found)
    }

    pub fn finished(
        &self,
        store: &dyn Store,
        state: &TeamState,
        ids: &[&ConnectionId],
    ) -> Result<Vec<HeldSession>, ArchiveError> {
        let mut found = Vec::new();
        if ids.is_empty() {
            return Ok(found);
        }
        let mut filters = self.0.lock();
        // Drop the filters of removed files.
        filters.retain(|path, _| state.files.contains_key(path));
        for file in state.files_of(Dataset::Sessions).filter(|file| file.role != FileRole::Open) {
            let wanted = wanted(&mut filters, store, file, ids)?;
            if !wanted.is_empty() {
                read(store, file, Some(&Arc::new(wanted)), |_| true, &mut found)?;
            }
        }
        Ok(found)
    }
}

fn wanted(
    cached: &mut HashMap<String, ConnectionFilters>,
    store: &dyn Store,
    file: &FileEntry,
    ids: &[&ConnectionId],
) -> Result<ConnectionIds, ArchiveError> {
    let held = |filters: &ConnectionFilters| {
        let some = |ids: &[&ConnectionId]| {
            let held = ids.iter().filter(|id| filters.may_hold(id)).map(|id| ConnectionId::clone(id));
            Ok::<_, ArchiveError>(held.collect::<Vec<_>>())
        };
        by_parts(ids, IDS_A_THREAD, some).map(|held| held.into_iter().flatten().collect())
    };
    if let Some(filters) = cached.get(&file.path) {
        return held(filters);
    }
    let filters = ConnectionFilters::open(store, &file.path, file.dataset)?;
    let wanted = held(&filters)?;
    if cached.values().map(ConnectionFilters::bytes).sum::<usize>() + filters.bytes() <= FILTER_BYTES_MAX {
        cached.insert(file.path.clone(), filters);
    }
    Ok(wanted)
}

fn read(
    store: &dyn Store,
    file: &FileEntry,
    connections: Option<&Arc<ConnectionIds>>,
    is_wanted: impl Fn(&SessionRow) -> bool,
    found: &mut Vec<HeldSession>,
) -> Result<(), ArchiveError> {
    let selection = Selection { connections, ..Selection::default() };
    TableReader::open(store, &file.path, file.dataset, selection)?.each(|batch| {
        let wanted = session_rows(&batch)?.into_iter().filter(|row| is_wanted(row));
        let is_open = file.role == FileRole::Open;
        found.extend(wanted.map(|row| HeldSession { row, path: file.path.clone(), is_open }));
        Ok(())
    })
}

//! The tables that the catalog serves, in memory. It reads a table again after another process published a version.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::json;

use crate::archive::Archive;
use crate::model::Instant;
use crate::store::Listed;

use super::table::Table;
use super::{LakeError, TableId};

/// Another process can publish: a request lists the versions in the store again after this time.
const REFRESH_EVERY: Duration = Duration::from_secs(60);

/// The published tables of an archive.
pub struct Catalog {
    archive: Arc<Archive>,
    /// Locked only to copy or replace the pointer: no thread waits here for the store.
    cached: Mutex<Arc<CachedTables>>,
    /// Held by the one thread that reads the store.
    refreshing: Mutex<()>,
}

#[derive(Default)]
struct CachedTables {
    refreshed_at: Option<Instant>,
    tables: BTreeMap<String, Loaded>,
}

/// A version of a table, and the catalog's answer for it.
#[derive(Clone)]
struct Loaded {
    /// The version's file, as it was listed before it was read.
    listed: Listed,
    answer: Bytes,
}

impl Catalog {
    pub fn new(archive: Arc<Archive>) -> Self {
        Self { archive, cached: Mutex::default(), refreshing: Mutex::default() }
    }

    /// The names of the tables that were published.
    ///
    /// # Errors
    /// When the store fails.
    pub fn tables(&self, now: Instant) -> Result<Vec<String>, LakeError> {
        Ok(self.current(now)?.tables.keys().cloned().collect())
    }

    /// The answer to a request that loads a table, in the form of Iceberg's REST catalog. `None`: no such table exists.
    ///
    /// # Errors
    /// When the store fails.
    pub fn load(&self, table: &str, now: Instant) -> Result<Option<Bytes>, LakeError> {
        Ok(self.current(now)?.tables.get(table).map(|loaded| loaded.answer.clone()))
    }

    /// Whether the catalog answers from memory, without the store.
    pub fn is_current(&self, now: Instant) -> bool {
        is_current(&self.cached(), now)
    }

    /// Reads the versions that were published since the last list.
    ///
    /// # Errors
    /// When the store fails. The tables stay as they were.
    pub fn refresh(&self, now: Instant) -> Result<(), LakeError> {
        let _refreshing = self.refreshing.lock();
        self.read_tables(now).map(drop)
    }

    /// The cached tables, if they are fresh or another thread reads newer ones. Only without cached tables a caller waits for it.
    fn current(&self, now: Instant) -> Result<Arc<CachedTables>, LakeError> {
        let cached = self.cached();
        if is_current(&cached, now) {
            return Ok(cached);
        }
        let _refreshing = match self.refreshing.try_lock() {
            Some(refreshing) => refreshing,
            None if cached.refreshed_at.is_some() => return Ok(cached),
            None => self.refreshing.lock(),
        };
        let cached = self.cached();
        if is_current(&cached, now) { Ok(cached) } else { self.read_tables(now) }
    }

    /// Reads the newest versions. A damaged table keeps its older version here, and the others are served.
    fn read_tables(&self, now: Instant) -> Result<Arc<CachedTables>, LakeError> {
        let (cached, mut tables) = (self.cached(), BTreeMap::new());
        for name in TableId::all().into_iter().map(TableId::as_str) {
            let known = cached.tables.get(name);
            let loaded = match self.newest(name, known) {
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, name, "the catalog cannot read the newest version of a table");
                    known.cloned()
                }
                Ok(loaded) => loaded,
            };
            tables.extend(loaded.map(|loaded| (name.to_owned(), loaded)));
        }
        let cached = Arc::new(CachedTables { refreshed_at: Some(now), tables });
        *self.cached.lock() = Arc::clone(&cached);
        Ok(cached)
    }

    fn newest(&self, name: &str, known: Option<&Loaded>) -> Result<Option<Loaded>, LakeError> {
        let store = self.archive.store().as_ref();
        let Some(listed) = Table::newest_listed(store, name)? else { return Ok(None) };
        match known.filter(|known| known.listed == listed) {
            Some(known) => Ok(Some(known.clone())),
            None => Table::read(store, name)?.map(|table| load(&table, listed)).transpose(),
        }
    }

    fn cached(&self) -> Arc<CachedTables> {
        Arc::clone(&self.cached.lock())
    }
}

fn is_current(cache: &CachedTables, now: Instant) -> bool {
    cache.refreshed_at.is_some_and(|at| now.since(at) < REFRESH_EVERY && at.since(now) < REFRESH_EVERY)
}

fn load(table: &Table, listed: Listed) -> Result<Loaded, LakeError> {
    let address = table.place()?.address(&table.path());
    let answer = json!({"metadata-location": address, "metadata": table.metadata, "config": {}});
    Ok(Loaded { listed, answer: answer.to_string().into() })
}

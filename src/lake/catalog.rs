//! The tables that the catalog serves, in memory. It reads a table again after another process published a version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::archive::Archive;
use crate::model::Instant;

use super::reader_root::ReaderRoot;
use super::table::Table;
use super::{LakeError, TableId};

/// Another process can publish: a request lists the versions in the store again after this time.
const REFRESH_EVERY: Duration = Duration::from_secs(60);

/// The published tables of an archive.
pub struct Catalog {
    archive: Arc<Archive>,
    cache: Mutex<CachedTables>,
}

#[derive(Default)]
struct CachedTables {
    refreshed_at: Option<Instant>,
    tables: BTreeMap<String, Loaded>,
}

/// A version of a table, and the catalog's answer for it.
#[derive(Clone)]
struct Loaded {
    version: u64,
    answer: Bytes,
}

impl Catalog {
    pub fn new(archive: Arc<Archive>) -> Self {
        Self { archive, cache: Mutex::default() }
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
        is_current(&self.cache(), now)
    }

    /// Reads the versions that were published since the last list.
    ///
    /// # Errors
    /// When the store fails. The tables stay as they were.
    pub fn refresh(&self, now: Instant) -> Result<(), LakeError> {
        self.refresh_tables(&mut self.cache(), now)
    }

    fn current(&self, now: Instant) -> Result<MutexGuard<'_, CachedTables>, LakeError> {
        let mut cache = self.cache();
        if !is_current(&cache, now) {
            self.refresh_tables(&mut cache, now)?;
        }
        Ok(cache)
    }

    fn refresh_tables(&self, cache: &mut CachedTables, now: Instant) -> Result<(), LakeError> {
        let store = self.archive.store().as_ref();
        let mut tables = BTreeMap::new();
        for name in TableId::all().into_iter().map(TableId::as_str) {
            let Some(version) = Table::newest(store, name)? else { continue };
            let known = cache.tables.get(name).filter(|loaded| loaded.version == version).cloned();
            let loaded = match known {
                Some(known) => known,
                None => load(&Table::read_version(store, name, version)?)?,
            };
            tables.insert(name.to_owned(), loaded);
        }
        *cache = CachedTables { refreshed_at: Some(now), tables };
        Ok(())
    }

    fn cache(&self) -> MutexGuard<'_, CachedTables> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_current(cache: &CachedTables, now: Instant) -> bool {
    cache.refreshed_at.is_some_and(|at| now.since(at) < REFRESH_EVERY && at.since(now) < REFRESH_EVERY)
}

fn load(table: &Table) -> Result<Loaded, LakeError> {
    let (path, location) = (table.path(), &table.metadata.location);
    let place = ReaderRoot::of_table(&table.name, location);
    let place = place.ok_or_else(|| LakeError::damaged(&path, format!("is at {location}")))?;
    let answer = json!({"metadata-location": place.address(&path), "metadata": table.metadata, "config": {}});
    Ok(Loaded { version: table.version, answer: answer.to_string().into() })
}

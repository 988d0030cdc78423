//! The manifest of an archive, which also says whether the ledger lies elsewhere, and the manifest of such a ledger.
//!
//! The archive's manifest does not name the ledger's place, because a ledger can move. The ledger's manifest names the archive.
//! So Annals notices a missing or wrong place, and begins no second ledger.

use serde::{Deserialize, Serialize};

use crate::model::path::{LEDGER, LEDGER_MANIFEST, MANIFEST, SALTS, TABLES};
use crate::store::{Store, StoreError, Verb, if_there, put};

use super::ArchiveError;

/// The format version of everything under an archive's root. Versions 1 and 2 were never released, and are refused.
pub const ARCHIVE_VERSION: u32 = 3;
const MANIFEST_BYTES_MAX: u64 = 64 * 1024;
const FORMAT: &str = "annals archive";
const LEDGER_FORMAT: &str = "annals ledger";

/// `archive.json`, and `ledger/archive.json` if the ledger lies elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    format: String,
    version: u32,
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ledger: Option<LedgerPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LedgerPlace {
    Elsewhere,
}

impl Manifest {
    /// The manifest of a new archive in `store`.
    pub(super) fn new(store: &dyn Store, id: String) -> Self {
        let ledger = store.as_split().is_some().then_some(LedgerPlace::Elsewhere);
        Self { format: FORMAT.to_owned(), version: ARCHIVE_VERSION, id, ledger }
    }

    /// Checks that the store has the ledger where this manifest says, and that it is this archive's.
    ///
    /// # Errors
    /// [`ArchiveError::LedgerElsewhere`], [`ArchiveError::LedgerInside`], [`ArchiveError::LedgerMissing`],
    /// [`ArchiveError::OtherLedger`], or an error of the store.
    pub(super) fn check_ledger(&self, store: &dyn Store) -> Result<(), ArchiveError> {
        match (self.ledger, store.as_split().is_some()) {
            (None, false) => Ok(()),
            (None, true) => Err(ArchiveError::LedgerInside),
            (Some(LedgerPlace::Elsewhere), false) => Err(ArchiveError::LedgerElsewhere),
            (Some(LedgerPlace::Elsewhere), true) => match read_ledger_manifest(store)? {
                Some(ledger) if ledger.id == self.id => Ok(()),
                Some(ledger) => Err(ArchiveError::OtherLedger { found: ledger.id }),
                None => Err(ArchiveError::LedgerMissing),
            },
        }
    }

    /// Like [`Manifest::check_ledger`], and begins the ledger of a new archive. The first commit makes a salt durable before its
    /// line, so an archive without salts has no line anywhere.
    pub(super) fn begin_ledger(&self, store: &dyn Store) -> Result<(), ArchiveError> {
        match self.check_ledger(store) {
            Err(ArchiveError::LedgerMissing) => {}
            checked => return checked,
        }
        for directory in [SALTS, TABLES, LEDGER] {
            if !store.list(directory)?.is_empty() {
                // Another process can have begun the ledger meanwhile.
                return self.check_ledger(store);
            }
        }
        let ledger = Self { format: LEDGER_FORMAT.to_owned(), ledger: None, ..self.clone() };
        match store.create_new(LEDGER_MANIFEST, &ledger.encode()) {
            // Another archive was first.
            Err(StoreError::Conflict { .. }) => self.check_ledger(store),
            created => Ok(created?),
        }
    }

    pub(super) fn write(&self, store: &dyn Store) -> Result<(), ArchiveError> {
        Ok(put(store, MANIFEST, &self.encode())?)
    }

    fn encode(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("BUG: a manifest has no map with odd keys");
        text.push(b'\n');
        text
    }
}

/// # Errors
/// [`ArchiveError::Version`], [`ArchiveError::Manifest`], or an error of the store.
pub(super) fn read_manifest(store: &dyn Store) -> Result<Option<Manifest>, ArchiveError> {
    read(store, MANIFEST, FORMAT)
}

/// The manifest of a ledger that lies elsewhere, if there is one.
pub(super) fn read_ledger_manifest(store: &dyn Store) -> Result<Option<Manifest>, ArchiveError> {
    read(store, LEDGER_MANIFEST, LEDGER_FORMAT)
}

fn read(store: &dyn Store, path: &'static str, format: &str) -> Result<Option<Manifest>, ArchiveError> {
    let bad = |reason: String| ArchiveError::Manifest { path, reason };
    let Some(blob) = if_there(store.read(path))? else { return Ok(None) };
    if blob.size() > MANIFEST_BYTES_MAX {
        return Err(bad(format!("the file has {} bytes, so Annals did not write it", blob.size())));
    }
    let content = blob.to_bytes().map_err(|e| StoreError::io(Verb::Read, path, e))?;
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_slice(&content).map_err(|e| bad(e.to_string()))?;
    if version != ARCHIVE_VERSION {
        return Err(ArchiveError::Version { found: version, known: ARCHIVE_VERSION });
    }
    let manifest: Manifest = serde_json::from_slice(&content).map_err(|e| bad(e.to_string()))?;
    if manifest.format != format {
        return Err(bad(format!("the format is {:?}, expected {format:?}", manifest.format)));
    }
    Ok(Some(manifest))
}

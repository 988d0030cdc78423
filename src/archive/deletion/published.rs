//! Which removed files the readers of open tables still need.
//!
//! A version of a table names the files that were live at certain ledger lines. While publishing is paused, the newest version
//! names files that later lines remove. Readers may open that version at any time, so `vacuum` keeps these files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::path::{metadata_of, version_number};
use crate::model::{Dataset, Digest, Instant, LedgerSeq, TeamId, TeamKey};
use crate::store::{Store, StoreError, if_there};

/// The entry of a snapshot's summary that is the address of a [`LinesFile`].
pub const LEDGERS: &str = "annals.ledgers";
const NANOS_PER_MILLI: i64 = 1_000_000;

/// A team's last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeamHead {
    pub team_id: TeamId,
    pub seq: LedgerSeq,
    /// The hash of the line.
    pub head: Digest,
}

/// The ledger lines that a snapshot of a table includes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinesFile {
    pub archive_id: String,
    pub teams: Vec<TeamHead>,
}

/// The number of the version of a table at `path`. `None` for a file that is no version.
pub fn version_of(path: &str) -> Option<u64> {
    version_number(path.rsplit_once('/')?.1)
}

pub fn version_path(table: &str, version: u64) -> String {
    format!("{}/v{version}.metadata.json", metadata_of(table))
}

/// The part of a table's version that tells which lines its snapshots stand for.
#[derive(Deserialize)]
struct Version {
    /// Oldest first.
    snapshots: Vec<TableSnapshot>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TableSnapshot {
    timestamp_ms: i64,
    summary: BTreeMap<String, String>,
}

/// The teams' last lines in the table that the oldest reader uses, which was current at `since`, the start of the grace, or later. This
/// reader needs each file that a later line removes. `None` where the dataset has no table. A table that cannot be read has no
/// lines, so `vacuum` keeps all its files; `verify` names the damage.
pub fn lines_of_table(
    store: &dyn Store,
    dataset: Dataset,
    since: Instant,
) -> Result<Option<BTreeMap<TeamKey, LedgerSeq>>, StoreError> {
    let listed = store.list(&metadata_of(dataset.as_str()))?;
    let Some(newest) = listed.iter().filter_map(|entry| version_of(&entry.path)).max() else { return Ok(None) };
    let version = content(store, &version_path(dataset.as_str(), newest))?;
    let version: Option<Version> = version.and_then(|content| serde_json::from_slice(&content).ok());
    let Some(path) = version.and_then(|version| oldest(&version, dataset, since)) else {
        return Ok(Some(BTreeMap::new()));
    };
    let lines = content(store, &path)?.and_then(|content| serde_json::from_slice::<LinesFile>(&content).ok());
    let teams = lines.into_iter().flat_map(|lines| lines.teams);
    Ok(Some(teams.map(|line| (TeamKey::of(&line.team_id), line.seq)).collect()))
}

/// The path of the lines of the oldest snapshot that was current within the grace.
fn oldest(version: &Version, dataset: Dataset, since: Instant) -> Option<String> {
    let at = |snapshot: &TableSnapshot| Instant::from_nanos(snapshot.timestamp_ms.saturating_mul(NANOS_PER_MILLI));
    let before = version.snapshots.iter().rev().find(|snapshot| at(snapshot) < since);
    let address = before.or(version.snapshots.first())?.summary.get(LEDGERS)?;
    let directory = metadata_of(dataset.as_str());
    let (_, name) = address.rsplit_once('/').filter(|(place, _)| place.ends_with(&directory))?;
    Some(format!("{directory}/{name}"))
}

/// `None` for a file that is missing or cannot be read.
fn content(store: &dyn Store, path: &str) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(if_there(store.read(path))?.and_then(|blob| blob.to_bytes().ok()).map(|bytes| bytes.to_vec()))
}

//! Independent engines read the open tables of random histories, at every snapshot, row for row.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use annals::archive::{Archive, schema_of};
use annals::lake::{Publisher, ReaderRoot, TableId, check, vacuum};
use annals::model::{Dataset, InventoryPart, Location};
use annals::store::{LocalStore, Store};
use serde_json::{Value, json};

use super::age;
use super::history::History;
use super::readers::Readers;

const READERS: [&str; 5] = ["pyiceberg", "polars", "duckdb", "clickhouse", "sail"];
const DATASETS: [(Dataset, &str); 6] = [
    (Dataset::Connections, "event_time"),
    (Dataset::Activity, "event_time"),
    (Dataset::Billing, "event_time"),
    (Dataset::Inventory(InventoryPart::Computers), "seen_at"),
    (Dataset::Sessions, "first_event_at"),
    (Dataset::Quarantine, "event_time"),
];

/// A version of a table, and its expected content.
struct Version {
    dataset: Dataset,
    time: &'static str,
    metadata: PathBuf,
    files: Vec<PathBuf>,
    snapshot: Option<i64>,
}

impl Version {
    /// The newest version, and the files that the ledgers name at present.
    fn newest(archive: &Archive, root: &Path, (dataset, time): (Dataset, &'static str)) -> Self {
        let directory = root.join(format!("tables/{dataset}/metadata"));
        let hint = std::fs::read_to_string(directory.join("version-hint.text")).unwrap();
        let mut files = Vec::new();
        for team in archive.teams().unwrap() {
            let reader = archive.read(&team).unwrap();
            files.extend(reader.state().files_of(dataset).map(|file| root.join(&file.path)));
        }
        Self { dataset, time, metadata: directory.join(format!("v{hint}.metadata.json")), files, snapshot: None }
    }

    fn snapshot_id(&self) -> i64 {
        let metadata: Value = serde_json::from_str(&std::fs::read_to_string(&self.metadata).unwrap()).unwrap();
        metadata["current-snapshot-id"].as_i64().unwrap()
    }

    fn job(&self, readers: &[&str]) -> Value {
        let schema = schema_of(self.dataset);
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        json!({
            "metadata": self.metadata, "files": self.files, "snapshot": self.snapshot, "time": self.time,
            "columns": columns, "readers": readers,
        })
    }
}

/// Asserts that every reader sees the rows of the files, their number, and their smallest and largest time.
fn assert_read(readers: &mut Readers, version: &Version, by: &[&str], when: &str) {
    readers.agree(&version.job(by), when);
}

/// Readers can continue with earlier versions, and find them from the newest version, too.
fn assert_read_back(readers: &mut Readers, archive: &Archive, root: &Path, before: &[Version], when: &str) {
    for version in before {
        assert_read(readers, version, &["pyiceberg", "duckdb"], &format!("{when}, an earlier version"));
    }
    for (dataset, time) in DATASETS {
        let newest = Version::newest(archive, root, (dataset, time)).metadata;
        for version in before.iter().filter(|version| version.dataset == dataset) {
            let (snapshot, files) = (Some(version.snapshot_id()), version.files.clone());
            let travel = Version { dataset, time, metadata: newest.clone(), files, snapshot };
            assert_read(readers, &travel, &READERS, &format!("{when}, back in time"));
        }
    }
}

#[test]
fn every_engine_reads_exactly_the_rows_of_the_ledgers_at_every_snapshot() {
    let Some(mut readers) = Readers::start("other engines on snapshots of open tables") else {
        return;
    };
    let is_long = std::env::var_os("ANNALS_LONG").is_some();
    let (seeds, rounds) = if is_long { (0..8, 12) } else { (0..2, 4) };
    for seed in seeds {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let store: Arc<dyn Store> = Arc::new(LocalStore::new(&root));
        let mut history = History::new(store, seed);
        let place = ReaderRoot::new(None, &Location::Local(root.clone())).unwrap();
        let mut before: Vec<Version> = Vec::new();
        for round in 0..rounds {
            (0..6).for_each(|_| history.step());
            Publisher::new(&history.archive, place.clone()).publish(&TableId::all()).unwrap();
            let when = format!("seed {seed}, round {round}");
            for version in DATASETS.map(|dataset| Version::newest(&history.archive, &root, dataset)) {
                assert_eq!(
                    check(&history.archive, TableId::Dataset(version.dataset)).unwrap().unwrap().differences,
                    [],
                    "{when}"
                );
                if !version.files.is_empty() {
                    assert_read(&mut readers, &version, &READERS, &when);
                    before.push(version);
                }
            }
            if round + 1 == rounds || is_long {
                assert_read_back(&mut readers, &history.archive, &root, &before, &when);
            }
        }
        // Ten days later, `vacuum` removes the files that no snapshot within the grace needs. The newest version remains whole.
        age::age(&root);
        history.vacuum();
        (0..6).for_each(|_| history.step());
        Publisher::new(&history.archive, place.clone()).publish(&TableId::all()).unwrap();
        DATASETS.iter().for_each(|(dataset, _)| drop(vacuum(&history.archive, dataset.as_str()).unwrap()));
        for version in DATASETS.map(|dataset| Version::newest(&history.archive, &root, dataset)) {
            if !version.files.is_empty() {
                assert_read(&mut readers, &version, &READERS, &format!("seed {seed}, after the vacuum"));
            }
        }
    }
}

//! The tables of random histories: published, interrupted at every request, published concurrently, damaged, expired.

#[path = "../../tests/lake/history.rs"]
mod history;
mod catalog;
mod planted;
mod size;
mod versions;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::archive::Archive;
use crate::model::Instant;
use crate::model::path::metadata_of;
use crate::store::{Fault, FaultyStore, MemoryStore, Store};
use history::History;
use table::{Table, hint_path, read_hint};

const ADDRESS: &str = "file:///srv/archive";

fn place() -> ReaderRoot {
    ReaderRoot::new(Some(ADDRESS), &crate::model::Location::Local("/elsewhere".into())).unwrap()
}

fn start() -> Instant {
    "2026-11-25T12:00:00Z".parse().unwrap()
}

/// A disk whose clock shows a day of November, and a history on it.
fn history(seed: u64) -> (MemoryStore, History) {
    let disk = MemoryStore::new();
    disk.set_now(start());
    let history = History::new(Arc::new(disk.clone()), seed);
    (disk, history)
}

fn open(disk: &MemoryStore) -> Archive {
    Archive::open(Arc::new(disk.clone())).unwrap()
}

fn publish(archive: &Archive) -> Result<Vec<Published>, LakeError> {
    Publisher::new(archive, place()).publish(&TableId::all())
}

/// Asserts that every table equals the ledgers now.
fn assert_exact(archive: &Archive, when: &str) {
    let store = archive.store().as_ref();
    let (mut rows, mut whole) = (0, 0);
    for id in TableId::all() {
        let checked = check(archive, id).unwrap().unwrap_or_else(|| panic!("{when}: {id:?} has no table"));
        assert_eq!(checked.differences, [], "{when}: {id:?}");
        assert_eq!(read_hint(store, id.as_str()).unwrap(), Some(checked.version), "{when}: {id:?}");
        *(if matches!(id, TableId::LedgerTable(_)) { &mut whole } else { &mut rows }) += checked.rows;
    }
    let teams = archive.teams().unwrap();
    let of = |count: fn(&crate::archive::TeamState) -> u64| -> u64 {
        teams.iter().map(|team| count(archive.read(team).unwrap().state())).sum()
    };
    assert_eq!(rows, of(|state| state.files.values().map(|file| file.rows).sum()), "{when}");
    assert_eq!(whole, of(|state| (state.windows.len() + state.findings.len()) as u64), "{when}");
}

fn later(disk: &MemoryStore, span: Duration) {
    disk.set_now(disk.now().unwrap().plus(span));
}

#[test]
fn each_snapshot_equals_the_ledgers_and_an_unchanged_archive_adds_none() {
    for seed in 0..6 {
        let (disk, mut history) = history(seed);
        for step in 0..30 {
            history.step();
            later(&disk, Duration::from_secs(900));
            publish(&history.archive).unwrap();
            assert_exact(&history.archive, &format!("seed {seed}, step {step}"));
            let before = disk.list("tables").unwrap();
            later(&disk, Duration::from_secs(1));
            let again = publish(&history.archive).unwrap();
            assert!(again.iter().all(|table| !table.is_new), "seed {seed}, step {step}: {again:?}");
            assert_eq!(disk.list("tables").unwrap(), before, "seed {seed}, step {step}");
        }
    }
}

#[test]
fn publishing_interrupted_at_any_request_leaves_complete_tables() {
    let (disk, mut history) = history(11);
    (0..20).for_each(|_| history.step());
    publish(&history.archive).unwrap();
    let versions = |disk: &MemoryStore| -> Vec<Option<u64>> {
        TableId::all().into_iter().map(|id| Table::newest(disk, id.as_str()).unwrap()).collect()
    };
    let before = versions(&disk);
    (0..8).for_each(|_| history.step());
    later(&disk, Duration::from_secs(900));
    // The long run tries every request. Other runs try every seventh, with another start for each fault.
    let step = if std::env::var_os("ANNALS_LONG").is_some() { 1 } else { 7 };
    for (first, fault) in [(0, Fault::Failed), (3 % step, Fault::FailedButDone)] {
        let mut cut = first;
        loop {
            let disk = disk.snapshot();
            let faulty = FaultyStore::new(Arc::new(disk.clone()), cut, true, fault);
            let tried = Archive::open(Arc::new(faulty)).map_err(LakeError::from).and_then(|archive| publish(&archive));
            let archive = open(&disk);
            for (id, before) in TableId::all().into_iter().zip(&before) {
                let table = Table::read(&disk, id.as_str()).unwrap().expect("it was published before");
                assert!(Some(table.version) >= *before && Some(table.version) <= before.map(|version| version + 1));
                let checked = check(&archive, id).unwrap().unwrap();
                assert_eq!(checked.differences, [], "{fault:?} at {cut}: {id:?}: whole, before or after");
            }
            publish(&archive).unwrap();
            assert_exact(&archive, &format!("{fault:?} at {cut}"));
            if tried.is_ok() {
                break;
            }
            cut += step;
        }
        assert!(cut > 40, "only {cut} requests were cut off");
    }
}

#[test]
fn two_publishers_at_once_build_one_chain_of_snapshots() {
    const ROUNDS: usize = 15;
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(crate::store::LocalStore::new(directory.path()));
    let mut history = History::new(Arc::clone(&store), 5);
    history.step();
    let archive = &history.archive.clone();
    // Each round starts all three threads together, so both publishers find the commits of the round before.
    let start = &std::sync::Barrier::new(3);
    let made = std::thread::scope(|scope| {
        let publishers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let publisher = Publisher::new(archive, place());
                    let run = |_| {
                        start.wait();
                        publisher.publish(&[Dataset::Connections, Dataset::Activity].map(TableId::Dataset))
                    };
                    (0..ROUNDS).map(run).collect::<Vec<_>>()
                })
            })
            .collect();
        for _ in 0..ROUNDS {
            start.wait();
            (0..4).for_each(|_| history.step());
        }
        let runs = publishers.into_iter().flat_map(|publisher| publisher.join().unwrap());
        runs.flat_map(Result::unwrap).filter(|table| table.is_new).count()
    });
    publish(archive).unwrap();
    assert_exact(archive, "after the race");
    for name in ["connections", "activity"] {
        let newest = Table::newest(store.as_ref(), name).unwrap().unwrap();
        let mut parent = None;
        for version in 1..=newest {
            let table = Table::read_version(store.as_ref(), name, version).unwrap();
            let current = table.metadata.current().unwrap();
            assert_eq!(current.parent_snapshot_id, parent, "{name}, version {version}");
            parent = Some(current.snapshot_id);
        }
    }
    assert!(made >= ROUNDS / 2, "{made} versions were made in the race");
}

#[test]
fn old_metadata_expires_and_snapshots_within_the_grace_keep_their_files() {
    let (disk, mut history) = history(3);
    for _ in 0..40 {
        history.step();
        later(&disk, Duration::from_secs(3_600));
        publish(&history.archive).unwrap();
    }
    let name = Dataset::Connections.as_str();
    let all = disk.list(&metadata_of(name)).unwrap().len();
    let found = vacuum(&history.archive, name).unwrap();
    assert!(!found.expired.is_empty());
    assert_exact(&history.archive, "after the vacuum");
    let table = Table::read(&disk, name).unwrap().unwrap();
    let grace = history.archive.grace();
    let oldest = table.metadata.snapshots.first().unwrap();
    // A publication without changes expires nothing either.
    let edge = table.metadata.last_updated_ms - i64::try_from(grace.as_millis()).unwrap();
    assert!(table.metadata.snapshots.len() > 5 && table.metadata.snapshots.len() < 40);
    assert!(table.metadata.snapshots[1].timestamp_ms >= edge, "the oldest was current within the grace");
    assert!(oldest.timestamp_ms < table.metadata.last_updated_ms);
    let left = disk.list(&metadata_of(name)).unwrap();
    assert_eq!(left.len(), all - found.expired.len());
    // Much later, only the files of the newest version are left.
    later(&disk, Duration::from_secs(30 * 86_400));
    history.step();
    (0..10).for_each(|_| history.step());
    publish(&history.archive).unwrap();
    vacuum(&history.archive, name).unwrap();
    history.vacuum();
    assert_exact(&history.archive, "a month later");
    let left: BTreeSet<String> = disk.list(&metadata_of(name)).unwrap().into_iter().map(|file| file.path).collect();
    assert!(left.len() < 12 && left.contains(&hint_path(name)), "{left:?}");
}

#[test]
fn a_moved_archive_is_published_again() {
    let (disk, mut history) = history(8);
    (0..12).for_each(|_| history.step());
    publish(&history.archive).unwrap();
    later(&disk, Duration::from_secs(60));
    let moved = ReaderRoot::new(Some("s3://bucket/a"), &crate::model::Location::Local("/elsewhere".into())).unwrap();
    let published = Publisher::new(&history.archive, moved).publish(&TableId::all()).unwrap();
    assert!(published.iter().all(|table| table.is_new && table.version == 2));
    let table = Table::read(&disk, "connections").unwrap().unwrap();
    assert_eq!(table.metadata.location, "s3://bucket/a/tables/connections");
    assert_eq!(table.metadata.snapshots.len(), 1);
    assert_exact(&history.archive, "at its new place");
}

#[test]
fn the_catalog_shows_a_published_version_within_a_minute() {
    let (disk, mut history) = history(9);
    let catalog = Catalog::new(Arc::new(history.archive.clone()));
    let now = start();
    assert_eq!(catalog.tables(now).unwrap(), Vec::<String>::new());
    (0..5).for_each(|_| history.step());
    publish(&history.archive).unwrap();
    assert_eq!(catalog.load("connections", now.plus(Duration::from_secs(59))).unwrap(), None);
    let answer = catalog.load("connections", now.plus(Duration::from_secs(60))).unwrap().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let table = Table::read(&disk, "connections").unwrap().unwrap();
    assert_eq!(answer["metadata-location"], format!("{ADDRESS}/{}", table.path()));
    assert_eq!(answer["metadata"]["current-snapshot-id"], table.metadata.current_snapshot_id);
    assert_eq!(catalog.tables(now.plus(Duration::from_secs(61))).unwrap().len(), TableId::all().len());
}

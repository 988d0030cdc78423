//! Versions of tables: when they expire, and names and content that no publisher writes.

use serde_json::{Value, json};

use super::*;
use crate::archive::{version_of, version_path};
use crate::lake::table::content;
use crate::store::{ListHookStore, put};

const NAME: &str = "connections";
const HOUR: Duration = Duration::from_secs(3_600);

/// Commits until `connections` changes, and publishes it.
fn publish_change(history: &mut History) {
    for _ in 0..100 {
        history.step();
        if publish(&history.archive).unwrap().iter().any(|table| table.table == NAME && table.is_new) {
            return;
        }
    }
    panic!("no commit changed {NAME}");
}

fn versions(disk: &MemoryStore) -> BTreeSet<u64> {
    disk.list(&metadata_of(NAME)).unwrap().iter().filter_map(|entry| version_of(&entry.path)).collect()
}

#[test]
fn a_version_expires_two_hours_after_its_replacement() {
    let (disk, mut history) = history(13);
    publish_change(&mut history);
    later(&disk, HOUR * 3);
    publish_change(&mut history);
    vacuum(&history.archive, NAME).unwrap();
    assert_eq!(versions(&disk), [1, 2].into(), "readers opened version 1 a moment ago");
    later(&disk, HOUR * 3);
    publish_change(&mut history);
    assert_eq!(versions(&disk), [2, 3].into());
    later(&disk, HOUR * 3);
    vacuum(&history.archive, NAME).unwrap();
    assert_eq!(versions(&disk), [3].into());
    assert_exact(&history.archive, "after the vacuum");
}

#[test]
fn a_version_that_is_replaced_between_list_and_read_is_read_in_its_newer_form() {
    let (disk, mut history) = history(16);
    publish_change(&mut history);
    let (first, second) = (version_path(NAME, 1), version_path(NAME, 2));
    let bytes = content(&disk, &first).unwrap();
    let own = disk.clone();
    let hook = move |_: &str| {
        put(&own, &second, &bytes).unwrap();
        own.remove(&[&first]).unwrap();
    };
    let store = ListHookStore { inner: Arc::new(disk), hook: Box::new(hook) };
    assert_eq!(Table::read(&store, NAME).unwrap().map(|table| table.version), Some(2));
}

#[test]
fn a_table_without_its_versions_is_not_taken_for_unpublished() {
    let (disk, mut history) = history(21);
    publish_change(&mut history);
    let version = version_path(NAME, 1);
    disk.remove(&[&version]).unwrap();
    let checked = check(&history.archive, TableId::Dataset(Dataset::Connections)).unwrap().unwrap();
    let found: Vec<TableFault> = checked.differences.iter().map(|difference| difference.fault).collect();
    assert_eq!(found, [TableFault::Metadata], "{:?}", checked.differences);
    publish(&history.archive).unwrap();
    assert_exact(&history.archive, "published again");
}

#[test]
fn files_with_names_that_no_publisher_writes_are_no_versions() {
    let (unpublished, mut history) = history(17);
    publish_change(&mut history);
    let published = unpublished.snapshot();
    let version = content(&published, &version_path(NAME, 1)).unwrap();
    for entry in unpublished.list(&metadata_of(NAME)).unwrap() {
        unpublished.remove(&[&entry.path]).unwrap();
    }
    for name in ["v0", "v01", "v+9", "v-1", "v", "v9007199254740992", "v18446744073709551615"] {
        for (disk, expected) in [(&unpublished, None), (&published, Some(1))] {
            for bytes in [&version[..], b"{}"] {
                let disk = disk.snapshot();
                put(&disk, &format!("{}/{name}.metadata.json", metadata_of(NAME)), bytes).unwrap();
                let archive = open(&disk);
                let checked = check(&archive, TableId::Dataset(Dataset::Connections)).unwrap();
                assert_eq!(checked.as_ref().map(|found| found.version), expected, "{name}");
                assert_eq!(checked.map(|found| found.differences).unwrap_or_default(), [], "{name}");
                publish(&archive).unwrap();
                assert_exact(&archive, name);
                assert_eq!(Table::newest(&disk, NAME).unwrap(), Some(1), "{name}");
            }
        }
    }
}

/// Rewrites the newest version.
fn rewrite(disk: &MemoryStore, change: impl FnOnce(&mut Value)) {
    let table = Table::read(disk, NAME).unwrap().unwrap();
    let mut version: Value = serde_json::from_slice(&content(disk, &table.path()).unwrap()).unwrap();
    change(&mut version);
    put(disk, &table.path(), version.to_string().as_bytes()).unwrap();
}

#[test]
fn addresses_of_files_outside_the_archive_are_refused() {
    let (disk, mut history) = history(18);
    publish_change(&mut history);
    for path in ["/etc/x", "../x", "tables/connections/metadata/../../../../x", "etc/x", ""] {
        let disk = disk.snapshot();
        let address = place().address(path);
        assert!(place().path(&address).is_err(), "{address}");
        rewrite(&disk, |version| version["snapshots"][0]["manifest-list"] = address.clone().into());
        let checked = check(&open(&disk), TableId::Dataset(Dataset::Connections)).unwrap().unwrap();
        let found: BTreeSet<TableFault> = checked.differences.iter().map(|difference| difference.fault).collect();
        assert_eq!(found, [TableFault::Metadata].into(), "{address}: {:?}", checked.differences);
    }
}

/// While a fleet is upgraded, publishers of the older and of the newer program take turns.
#[test]
fn a_publisher_keeps_the_columns_that_a_newer_program_added() {
    let (disk, mut history) = history(19);
    publish_change(&mut history);
    rewrite(&disk, |version| {
        let columns = version["schemas"][0]["fields"].as_array_mut().unwrap();
        columns.push(json!({"id": 999, "name": "added", "required": false, "type": "timestamp"}));
    });
    let again = publish(&history.archive).unwrap();
    assert!(again.iter().all(|table| !table.is_new), "{again:?}");
    publish_change(&mut history);
    rewrite(&disk, |version| {
        let schemas = version["schemas"].as_array().unwrap();
        assert_eq!(schemas.len(), 1, "{schemas:?}");
        assert_eq!(schemas[0]["fields"].as_array().unwrap().last().unwrap()["name"], "added");
    });
    assert_exact(&history.archive, "with a column of a newer program");
}

/// `annals sync && annals publish` by cron, without a daemon.
#[test]
fn publishing_alone_bounds_the_number_of_files() {
    const RUNS_A_DAY: usize = 4;
    let (disk, mut history) = history(20);
    for _ in 0..30 * RUNS_A_DAY {
        later(&disk, HOUR * 6);
        (0..5).for_each(|_| history.step());
        publish(&history.archive).unwrap();
    }
    // The grace is a day, a vacuum runs once a day, and a run writes a list, its lines, a manifest and at most a few data files.
    let most = 4 * 2 * RUNS_A_DAY + 20;
    for id in TableId::all() {
        let newest = Table::newest(&disk, id.as_str()).unwrap().unwrap();
        let files = disk.list(&metadata_of(id.as_str())).unwrap().len();
        assert!(files <= most, "{id:?}: {files} files after {newest} versions");
        let data = disk.list(&crate::model::path::data_of(id.as_str())).unwrap().len();
        assert!(data <= most, "{id:?}: {data} data files after {newest} versions");
    }
    let newest = Table::newest(&disk, NAME).unwrap().unwrap();
    assert!(newest > most as u64, "{newest} versions show no growth");
    assert_exact(&history.archive, "after 30 days");
}

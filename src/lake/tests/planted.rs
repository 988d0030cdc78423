//! Tables with planted damage: the check names each difference, and no other.

use super::*;
use crate::archive::{LinesFile, version_path};
use crate::lake::manifest::{Entry, decode_manifest, encode_manifest};
use crate::lake::table::content;
use crate::model::path::data_of;
use crate::store::put;

/// Rewrites the entries of the newest manifest of `connections`.
fn replant(disk: &MemoryStore, change: impl FnOnce(&mut Vec<Entry>)) {
    let table = Table::read(disk, "connections").unwrap().unwrap();
    let mut manifests = table.manifests(disk, &place()).unwrap();
    manifests.retain(|manifest| manifest.file.live() > 0);
    let manifest = manifests.pop().unwrap();
    let mut entries = decode_manifest(&place(), &content(disk, &manifest.file.path).unwrap()).unwrap();
    change(&mut entries);
    let schema = serde_json::to_string(table.metadata.schema().unwrap()).unwrap();
    put(disk, &manifest.file.path, &encode_manifest(&place(), &schema, 0, &entries)).unwrap();
}

fn live(entries: &mut [Entry]) -> &mut Entry {
    entries.iter_mut().find(|entry| entry.is_live()).unwrap()
}

fn newest(disk: &MemoryStore) -> Table {
    Table::read(disk, "connections").unwrap().unwrap()
}

type Plant = fn(&MemoryStore);

type Planted = (&'static str, Plant, &'static [TableFault]);

const OF_FILES: [Planted; 5] = [
    (
        "a file is missing",
        |disk| replant(disk, |entries| entries.retain(|entry| !entry.is_live() || entry.file.path.is_empty())),
        &[TableFault::FileMissing],
    ),
    (
        "a file is one too many",
        |disk| {
            replant(disk, |entries| {
                let again = live(entries).clone();
                entries.push(again);
            });
        },
        &[TableFault::FileSurplus],
    ),
    (
        "a bound is a microsecond loose",
        |disk| {
            replant(disk, |entries| {
                let (_, time) = &mut live(entries).file.bounds.upper[1];
                let loose = i64::from_le_bytes(time.as_slice().try_into().unwrap()) + 1;
                *time = loose.to_le_bytes().to_vec();
            });
        },
        &[TableFault::Bound],
    ),
    ("one row too many is counted", |disk| replant(disk, |entries| live(entries).file.rows += 1), &[TableFault::Count]),
    (
        "counts are too large to add up",
        |disk| {
            replant(disk, |entries| {
                let rows = entries.iter_mut().filter(|entry| entry.is_live()).map(|entry| &mut entry.file.rows);
                let changed = rows.map(|rows| *rows = i64::MAX as u64).count();
                assert!(changed > 2, "{changed} files: their sum is no overflow");
            });
        },
        &[TableFault::Count],
    ),
];

const OF_VERSIONS: [Planted; 5] = [
    (
        "a version does not continue the previous one",
        |disk| {
            let table = newest(disk);
            let bytes = content(disk, &table.path()).unwrap();
            put(disk, &version_path("connections", table.version + 1), &bytes).unwrap();
        },
        &[TableFault::Forked],
    ),
    (
        "a version stands for lines that no ledger has",
        |disk| {
            let path = table::lines_path(&place(), newest(disk).metadata.current().unwrap()).unwrap();
            let mut lines = serde_json::from_slice::<LinesFile>(&content(disk, &path).unwrap()).unwrap();
            lines.teams[0].head = crate::model::Digest::of(b"another ledger");
            put(disk, &path, &serde_json::to_vec(&lines).unwrap()).unwrap();
        },
        &[TableFault::Forked],
    ),
    (
        "readers are pointed to an old version",
        |disk| {
            put(disk, &hint_path("connections"), b"1").unwrap();
            later(disk, Duration::from_secs(3 * 3_600));
        },
        &[TableFault::Hint],
    ),
    (
        "the list of a snapshot within the grace is missing",
        |disk| {
            let table = newest(disk);
            let list = place().path(&table.metadata.snapshots[0].manifest_list).unwrap();
            disk.remove(&[&list]).unwrap();
        },
        &[TableFault::Metadata],
    ),
    (
        "the newest version is no metadata",
        |disk| put(disk, &newest(disk).path(), b"{}").unwrap(),
        &[TableFault::Metadata],
    ),
];

#[test]
fn each_planted_difference_is_named() {
    let (disk, mut history) = history(21);
    for _ in 0..3 {
        (0..8).for_each(|_| history.step());
        later(&disk, Duration::from_secs(900));
        publish(&history.archive).unwrap();
    }
    assert_exact(&history.archive, "before anything is planted");
    for (what, plant, faults) in OF_FILES.into_iter().chain(OF_VERSIONS) {
        let disk = disk.snapshot();
        plant(&disk);
        let checked = check(&open(&disk), TableId::Dataset(Dataset::Connections)).unwrap().unwrap();
        let found: BTreeSet<TableFault> = checked.differences.iter().map(|difference| difference.fault).collect();
        assert_eq!(found, faults.iter().copied().collect(), "{what}: {:?}", checked.differences);
        for id in TableId::all().into_iter().filter(|id| id.as_str() != "connections") {
            assert_eq!(check(&open(&disk), id).unwrap().unwrap().differences, [], "{what}: {id:?}");
        }
    }
}

#[test]
fn every_flipped_bit_in_a_file_of_a_ledger_table_is_named() {
    const STEP_BYTES: usize = 97;
    let (disk, mut history) = history(22);
    (0..20).for_each(|_| history.step());
    publish(&history.archive).unwrap();
    let mut flipped = 0;
    for table in LedgerTable::ALL {
        for file in disk.list(&data_of(table.as_str())).unwrap() {
            let whole = content(&disk, &file.path).unwrap();
            for at in (0..whole.len()).step_by(STEP_BYTES) {
                let disk = disk.snapshot();
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (at % 8);
                put(&disk, &file.path, &bytes).unwrap();
                let checked = check(&open(&disk), TableId::LedgerTable(table)).unwrap().unwrap();
                let found: Vec<_> = checked.differences.iter().map(|it| (it.fault, it.object.as_str())).collect();
                assert_eq!(found, [(TableFault::Count, file.path.as_str())], "a bit of byte {at}");
                flipped += 1;
            }
        }
    }
    assert!(flipped > 10, "only {flipped} bits were flipped");
}

#[test]
fn the_check_names_a_missing_data_file() {
    let (disk, mut history) = history(4);
    (0..30).for_each(|_| history.step());
    publish(&history.archive).unwrap();
    let files = disk.list("tables/connections").unwrap();
    let path = &files.iter().find(|file| {
        let table = newest(&disk).manifests(&disk, &place()).unwrap();
        table.iter().flat_map(|manifest| &manifest.entries).any(|entry| entry.is_live() && entry.file.path == file.path)
    });
    let path = path.map(|file| file.path.clone()).unwrap();
    disk.remove(&[&path]).unwrap();
    let checked = check(&open(&disk), TableId::Dataset(Dataset::Connections)).unwrap().unwrap();
    let found: Vec<_> = checked.differences.iter().map(|difference| (difference.fault, &difference.object)).collect();
    assert_eq!(found, [(TableFault::FileGone, &path)]);
}

//! Files whose large row groups are copied into other files unchanged.

use parquet::file::metadata::{ParquetMetaDataReader, RowGroupMetaData};

use super::super::{MemoryStore, VerifyOptions, verify};
use super::*;

/// Enough rows for a row group that is copied.
const MANY: u64 = 5_000;
/// Too few rows for that.
const FEW: u64 = 700;

/// Events of one day from a given second on, a second apart.
fn from_second(date: &str, first: u64, count: u64) -> Vec<EventRow> {
    let start = day(date).start;
    let one = |n: u64| event(&format!("{date}-{n:05}"), start.plus(Duration::from_secs(n)));
    (first..first + count).map(one).collect()
}

/// The rows of each row group of the only sealed file.
fn groups(store: &Arc<dyn Store>) -> Vec<i64> {
    let files = live_under(store, "tables");
    assert_eq!(files.len(), 1, "{files:?}");
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&store.read(&files[0]).unwrap()).unwrap();
    metadata.row_groups().iter().map(RowGroupMetaData::num_rows).collect()
}

fn sealed(store: &Arc<dyn Store>, steps: Vec<Vec<WindowRows>>) -> Result<Archive, ArchiveError> {
    let archive = open(store);
    let mut writer = writer(&archive);
    for rows in steps {
        let _ = commit(&mut writer, Draft { rows, ..Draft::default() })?;
    }
    let seal_months = vec![(Stream::Connections, november())];
    let _ = commit(&mut writer, Draft { seal_months, ..Draft::default() })?;
    Ok(archive)
}

#[test]
fn large_row_groups_are_copied_and_small_ones_are_merged() {
    let of = |date: &str, count: u64| rows(date, from_second(date, 0, count), true);
    let overlapping = [
        vec![rows("2026-11-01", from_second("2026-11-01", 0, MANY).into_iter().step_by(2).collect(), false)],
        vec![rows("2026-11-01", from_second("2026-11-01", 0, MANY).into_iter().skip(1).step_by(2).collect(), false)],
    ];
    for (scenario, steps, expected) in [
        ("two large days", vec![vec![of("2026-11-01", MANY), of("2026-11-02", MANY)]], vec![5_000, 5_000]),
        (
            "small ones before, between and after",
            vec![vec![of("2026-11-01", FEW), of("2026-11-02", FEW), of("2026-11-03", MANY), of("2026-11-04", FEW)]],
            vec![1_400, 5_000, 700],
        ),
        ("small ones alone", vec![vec![of("2026-11-01", FEW), of("2026-11-02", FEW)]], vec![1_400]),
        (
            "a day in parts that follow one another",
            vec![
                vec![rows("2026-11-01", from_second("2026-11-01", MANY, MANY), false)],
                vec![rows("2026-11-01", from_second("2026-11-01", 0, MANY), true)],
            ],
            vec![5_000, 5_000],
        ),
        ("parts that lie in one another", overlapping.to_vec(), vec![5_000]),
    ] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let all: Vec<String> =
            steps.iter().flatten().flat_map(|w| &w.rows).map(|row| row.event_id.to_string()).collect();
        let archive = sealed(&store, steps).unwrap();
        assert_eq!(groups(&store), expected, "{scenario}");
        assert_eq!(ids_in(&archive), all.into_iter().map(|id| (id, 1)).collect(), "{scenario}");
        let report = verify(store.as_ref(), &VerifyOptions::default()).unwrap();
        assert!(report.faults.is_empty(), "{scenario}: {:?}", report.faults);
        let reader = archive.read(&team()).unwrap();
        let mut times = Vec::new();
        let all = Range::new(Instant::EARLIEST, Instant::LATEST);
        reader
            .rows_in(Stream::Connections, all, &mut |row| {
                times.push(row.time);
                Ok(())
            })
            .unwrap();
        assert!(times.is_sorted(), "{scenario}");
    }
}

#[test]
fn an_altered_file_is_not_copied() {
    let store = MemoryStore::new();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let archive = open(&shared);
    let mut writer = writer(&archive);
    let window = rows("2026-11-01", from_second("2026-11-01", 0, MANY), true);
    let _ = commit(&mut writer, Draft { rows: vec![window], ..Draft::default() }).unwrap();
    let path = files_under(&shared, "tables").remove(0);
    let mut content = shared.read(&path).unwrap().to_bytes().unwrap().to_vec();
    content[100] ^= 1;
    store.tamper(&path, Some(content.into()));
    let seal_months = vec![(Stream::Connections, november())];
    let refused = commit(&mut writer, Draft { seal_months, ..Draft::default() });
    assert!(matches!(refused, Err(ArchiveError::FileAltered { .. })), "{refused:?}");
}

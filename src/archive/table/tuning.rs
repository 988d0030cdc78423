//! The encoding of files, and the memory limits. `docs/decisions/0006-encoding.md` gives the measurements.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{
    BloomFilterPosition, EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::ColumnPath;

use crate::model::{Dataset, SESSION_DETAILS};

use super::super::random::Nonce;
use super::column::CONNECTION_ID;
use super::column::{REPEATED, TIMES};
use super::{TABLE_VERSION, column, schema_of};

/// Maximum rows of one batch in memory.
pub const BATCH_ROWS_MAX: usize = 4096;
/// Maximum bytes of text in one batch, unless one event alone is larger.
pub const BATCH_BYTES_MAX: usize = 32 << 20;
/// Maximum rows of one row group.
pub const GROUP_ROWS_MAX: usize = 131_072;
/// Maximum bytes of text in one row group: decoding needs as much memory.
pub const GROUP_BYTES_MAX: usize = 128 << 20;

/// Pages of this size stay in the processor's cache while they are compressed.
const RAW_PAGE_BYTES: usize = 512 << 10;
const PAGE_BYTES: usize = 256 << 10;
/// Smaller files are not compressed, because setting up compression for each column costs too much.
const COMPRESSED_ROWS_MIN: u64 = 256;
const COMPRESSION_LEVEL: i32 = 1;
const BLOOM_FALSE_POSITIVES: f64 = 0.01;
/// Every new connection is looked up in every session file. So a false positive must be much rarer here than in other filters.
const SESSION_FALSE_POSITIVES: f64 = 0.000_01;
/// Columns with dictionaries or deltas, which compression makes little smaller: they are not compressed. Neither are the columns
/// that `connections` adds, except [`COMPRESSED`].
const PLAIN: [&str; 7] = [
    column::TEAM_ID,
    column::REVISION,
    column::FIRST_SEEN_AT,
    column::REDACTED,
    column::EVENT_TIME,
    column::EVENT_TIME_NS,
    column::EVENT_TYPE,
];
const COMPRESSED: [&str; 2] = [CONNECTION_ID, "peer_ip"];
/// Readers read smaller files whole, so these need no filter.
const BLOOM_ROWS_MIN: u64 = 4096;
/// The columns in which queries look up a single value.
const BLOOM_COLUMNS: [&str; 4] = [CONNECTION_ID, "device_id", "peer_email", "peer_ip"];

/// The settings for a file of about `rows` rows. The random nonce makes the file's hash confirm no guess of its rows.
pub fn properties(dataset: Dataset, rows: u64, nonce: Nonce) -> WriterProperties {
    let note = |key: &str, value: &str| KeyValue::new(format!("annals.{key}"), value.to_owned());
    let schema = schema_of(dataset);
    let order = |name: &str| SortingColumn {
        column_idx: i32::try_from(schema.index_of(name).expect("BUG: every dataset has the column"))
            .expect("BUG: a dataset has few columns"),
        descending: false,
        nulls_first: false,
    };
    let level = || ZstdLevel::try_new(COMPRESSION_LEVEL).expect("BUG: a level that zstd has");
    let compression = if rows < COMPRESSED_ROWS_MIN { Compression::UNCOMPRESSED } else { Compression::ZSTD(level()) };
    let builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by("annals".to_owned())
        .set_key_value_metadata(Some(vec![
            note("version", TABLE_VERSION),
            note("dataset", dataset.as_str()),
            note("nonce", &nonce.to_string()),
        ]))
        .set_sorting_columns(Some(vec![order(sorted_by(dataset))]))
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_bloom_filter_position(BloomFilterPosition::End)
        .set_max_row_group_row_count(Some(GROUP_ROWS_MAX))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(GROUP_ROWS_MAX)
        .set_dictionary_page_size_limit(1 << 20);
    with_blooms(with_columns(builder, dataset), dataset, rows).build()
}

/// The column by which the rows of a file are sorted.
pub fn sorted_by(dataset: Dataset) -> &'static str {
    match dataset {
        Dataset::Sessions => column::FIRST_EVENT_AT,
        Dataset::Inventory(_) => column::SEEN_AT,
        _ => column::EVENT_TIME_NS,
    }
}

fn with_columns(builder: WriterPropertiesBuilder, dataset: Dataset) -> WriterPropertiesBuilder {
    let encoded = |builder: WriterPropertiesBuilder, names: &[&str], encoding: Encoding| {
        names.iter().map(|name| ColumnPath::from(*name)).fold(builder, |builder, path| {
            builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding)
        })
    };
    let times = [column::EVENT_TIME, column::EVENT_TIME_NS];
    let mut builder = encoded(builder, &times, Encoding::DELTA_BINARY_PACKED);
    for name in times {
        builder = builder.set_column_statistics_enabled(ColumnPath::from(name), EnabledStatistics::Page);
    }
    // Deltas need a third less space than dictionaries, which would be too large, and are faster to read.
    builder = encoded(builder, &TIMES, Encoding::DELTA_BINARY_PACKED);
    let texts = [column::RAW, column::RAW_BYTES, column::EVENT_ID, CONNECTION_ID];
    builder = encoded(builder, &texts, Encoding::DELTA_LENGTH_BYTE_ARRAY);
    for name in [column::RAW, column::RAW_BYTES] {
        let path = ColumnPath::from(name);
        builder = builder
            .set_column_data_page_size_limit(path.clone(), RAW_PAGE_BYTES)
            .set_column_statistics_enabled(path, EnabledStatistics::None);
    }
    let of_sessions = REPEATED.iter().chain(&SESSION_DETAILS).chain(&TIMES).filter(|_| dataset == Dataset::Sessions);
    let of_connections = column::CONNECTION.iter().filter(|name| !COMPRESSED.contains(name));
    for name in PLAIN.iter().chain(of_connections).chain(of_sessions) {
        builder = builder.set_column_compression(ColumnPath::from(*name), Compression::UNCOMPRESSED);
    }
    for name in [column::EVENT_ID, CONNECTION_ID].iter().chain(&SESSION_DETAILS) {
        // Each file holds small and large values, so minimum and maximum are useless, and cost two comparisons for each event.
        builder = builder.set_column_statistics_enabled(ColumnPath::from(*name), EnabledStatistics::None);
    }
    builder
}

fn with_blooms(builder: WriterPropertiesBuilder, dataset: Dataset, rows: u64) -> WriterPropertiesBuilder {
    let (columns, false_positives): (&[&str], f64) = match dataset {
        Dataset::Sessions => (&[CONNECTION_ID], SESSION_FALSE_POSITIVES),
        Dataset::Connections if rows >= BLOOM_ROWS_MIN => (&BLOOM_COLUMNS, BLOOM_FALSE_POSITIVES),
        _ => return builder,
    };
    columns.iter().map(|name| ColumnPath::from(*name)).fold(builder, |builder, path| {
        builder
            .set_column_bloom_filter_enabled(path.clone(), true)
            .set_column_bloom_filter_fpp(path.clone(), false_positives)
            // Size the filter for as many values as rows; the writer then folds it to the real number.
            .set_column_bloom_filter_ndv(path, rows.clamp(1, GROUP_ROWS_MAX as u64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> ColumnPath {
        ColumnPath::from(name)
    }

    #[test]
    fn large_files_are_compressed() {
        for (rows, is_compressed) in [(COMPRESSED_ROWS_MIN - 1, false), (COMPRESSED_ROWS_MIN, true)] {
            let properties = properties(Dataset::Connections, rows, Nonce(7));
            for name in [column::RAW, column::EVENT_ID, CONNECTION_ID, "peer_ip"] {
                let found = properties.compression(&path(name)) != Compression::UNCOMPRESSED;
                assert_eq!(found, is_compressed, "{rows} rows, {name}");
            }
            let of_connections = column::CONNECTION.into_iter().filter(|name| !COMPRESSED.contains(name));
            for name in PLAIN.into_iter().chain(of_connections) {
                assert_eq!(properties.compression(&path(name)), Compression::UNCOMPRESSED, "{name}");
            }
        }
    }

    #[test]
    fn large_files_have_filters_for_value_lookups() {
        let filters = |dataset, rows| {
            let properties = properties(dataset, rows, Nonce(7));
            let found =
                BLOOM_COLUMNS.map(|name| properties.bloom_filter_properties(&path(name)).map(|f| (f.fpp, f.ndv)));
            assert!(properties.bloom_filter_properties(&path(column::RAW)).is_none());
            found.into_iter().flatten().collect::<Vec<_>>()
        };
        let most = GROUP_ROWS_MAX as u64;
        for (dataset, rows, expected) in [
            (Dataset::Connections, BLOOM_ROWS_MIN - 1, vec![]),
            (Dataset::Connections, BLOOM_ROWS_MIN, vec![(BLOOM_FALSE_POSITIVES, BLOOM_ROWS_MIN); 4]),
            (Dataset::Connections, most + 1, vec![(BLOOM_FALSE_POSITIVES, most); 4]),
            (Dataset::Activity, BLOOM_ROWS_MIN, vec![]),
            (Dataset::Sessions, 0, vec![(SESSION_FALSE_POSITIVES, 1)]),
            (Dataset::Sessions, 7, vec![(SESSION_FALSE_POSITIVES, 7)]),
            (Dataset::Sessions, most + 1, vec![(SESSION_FALSE_POSITIVES, most)]),
        ] {
            assert_eq!(filters(dataset, rows), expected, "{dataset}, {rows} rows");
        }
    }

    #[test]
    fn every_dataset_records_its_sort_order() {
        for dataset in Dataset::ALL {
            let properties = properties(dataset, 1, Nonce(7));
            let by = &properties.sorting_columns().unwrap()[0];
            let name = schema_of(dataset).field(usize::try_from(by.column_idx).unwrap()).name().clone();
            assert_eq!((name.as_str(), by.descending, by.nulls_first), (sorted_by(dataset), false, false), "{dataset}");
        }
        let by = [Dataset::Activity, Dataset::Quarantine, Dataset::Sessions].map(sorted_by);
        assert_eq!(by, [column::EVENT_TIME_NS, column::EVENT_TIME_NS, column::FIRST_EVENT_AT]);
        assert_eq!(sorted_by(Dataset::Inventory(crate::model::InventoryPart::Users)), column::SEEN_AT);
    }
}

//! How files are encoded, and the limits of what is held in memory.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{BloomFilterPosition, EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

use super::super::Dataset;
use super::{TABLE_VERSION, column, schema_of};

/// Rows of one batch in memory.
pub const BATCH_ROWS_MAX: usize = 8192;
/// Text of one batch in memory, unless one event alone is larger.
pub const BATCH_BYTES_MAX: usize = 32 << 20;
/// Rows of one row group.
pub const GROUP_ROWS_MAX: usize = 131_072;
/// Text of one row group: what decoding one at a time can need.
pub const GROUP_BYTES_MAX: usize = 128 << 20;

const RAW_PAGE_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 256 << 10;
const BLOOM_FALSE_POSITIVES: f64 = 0.01;
/// Smaller files are read whole anyway.
const BLOOM_ROWS_MIN: u64 = 4096;
/// The columns in which one value is looked up.
const BLOOM_COLUMNS: [&str; 4] = ["connection_id", "device_id", "peer_email", "peer_ip"];

/// How long a file is going to live, and so how much work its encoding is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Until its window settles.
    Part,
    /// Until its month is sealed.
    Window,
    /// For good.
    Sealed,
}

impl Tier {
    const fn level(self) -> i32 {
        match self {
            Tier::Part => 1,
            Tier::Window => 3,
            Tier::Sealed => 9,
        }
    }
}

/// The settings for a file of `rows` rows, or a few more.
pub fn properties(dataset: Dataset, tier: Tier, rows: u64) -> WriterProperties {
    let zstd = |level: i32| Compression::ZSTD(ZstdLevel::try_new(level).expect("BUG: a level that zstd has"));
    let note = |key: &str, value: &str| KeyValue::new(format!("annals.{key}"), value.to_owned());
    let schema = schema_of(dataset);
    let order = |name: &str| SortingColumn {
        column_idx: i32::try_from(schema.index_of(name).expect("BUG: every dataset has it")).expect("BUG: few columns"),
        descending: false,
        nulls_first: false,
    };
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by("annals".to_owned())
        .set_key_value_metadata(Some(vec![note("version", TABLE_VERSION), note("dataset", dataset.as_str())]))
        .set_sorting_columns(Some(vec![order(column::EVENT_TIME_NS)]))
        .set_compression(zstd(tier.level()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_bloom_filter_position(BloomFilterPosition::End)
        .set_max_row_group_row_count(Some(GROUP_ROWS_MAX))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(GROUP_ROWS_MAX)
        .set_dictionary_page_size_limit(1 << 20);
    for name in [column::EVENT_TIME, column::EVENT_TIME_NS] {
        let path = ColumnPath::from(name);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
            .set_column_statistics_enabled(path, EnabledStatistics::Page);
    }
    for name in [column::RAW, column::RAW_BYTES] {
        let path = ColumnPath::from(name);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_data_page_size_limit(path.clone(), RAW_PAGE_BYTES)
            .set_column_statistics_enabled(path, EnabledStatistics::None);
    }
    builder = builder.set_column_dictionary_enabled(ColumnPath::from(column::EVENT_ID), false);
    if dataset == Dataset::Connections && rows >= BLOOM_ROWS_MIN {
        let distinct = rows.min(GROUP_ROWS_MAX as u64);
        for name in BLOOM_COLUMNS {
            let path = ColumnPath::from(name);
            builder = builder
                .set_column_bloom_filter_enabled(path.clone(), true)
                .set_column_bloom_filter_fpp(path.clone(), BLOOM_FALSE_POSITIVES)
                .set_column_bloom_filter_ndv(path, distinct);
        }
    }
    builder.build()
}

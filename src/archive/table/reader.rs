//! Reads one Parquet file batch by batch, and decodes only the selected data.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::bloom_filter::Sbbf;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use crate::model::{ConnectionId, ConnectionIds, Dataset, Range};
use crate::store::{Blob, Store};

use super::super::ArchiveError;
use super::tuning::{BATCH_BYTES_MAX, BATCH_ROWS_MAX};
use super::{column, schema_of};

/// The data to decode from a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// These columns; empty means all.
    pub columns: &'a [&'a str],
    /// Row groups that can hold event times of this range; rows are not filtered.
    pub range: Option<Range>,
    pub connections: Option<&'a Arc<ConnectionIds>>,
    /// Text columns to decode as dictionaries of each batch's distinct values.
    pub as_dictionaries: &'a [&'a str],
}

/// The batches of one file, in order.
pub struct TableReader {
    path: String,
    reader: ParquetRecordBatchReader,
    /// Set after an error: the decoder's state is then undefined, so nothing more is read.
    is_broken: bool,
}

impl TableReader {
    /// Opens a file of `dataset`.
    ///
    /// # Errors
    /// When the store fails, or the file is no table of this dataset and version.
    pub fn open(
        store: &dyn Store,
        path: &str,
        dataset: Dataset,
        selection: Selection<'_>,
    ) -> Result<Self, ArchiveError> {
        let blob = store.read(path)?;
        guarded(path, || Self::build(path, blob, dataset, selection))
    }

    fn build(path: &str, blob: Blob, dataset: Dataset, selection: Selection<'_>) -> Result<Self, ArchiveError> {
        let table = |detail: String| ArchiveError::Table { path: path.to_owned(), detail };
        let (bytes, blob_again) = (blob.size(), blob.clone());
        let builder = ParquetRecordBatchReaderBuilder::try_new(blob).map_err(|e| table(e.to_string()))?;
        if builder.schema().fields() != schema_of(dataset).fields() {
            return Err(table(format!("its columns differ from those of {dataset}")));
        }
        if let Some(problem) = misplaced(builder.metadata().row_groups(), bytes) {
            return Err(table(problem));
        }
        let builder =
            with_dictionaries(builder, blob_again, selection.as_dictionaries).map_err(|e| table(e.to_string()))?;
        let is_asked = |group: &RowGroupMetaData| selection.range.is_none_or(|range| may_hold(group, range));
        let groups = (0..).zip(builder.metadata().row_groups()).filter(|(_, group)| is_asked(group));
        let groups = groups.map(|(at, _)| at).collect();
        let rows_max = batch_rows(builder.metadata().row_groups());
        let mask = match selection.columns {
            [] => ProjectionMask::all(),
            names => ProjectionMask::columns(builder.parquet_schema(), names.iter().copied()),
        };
        let filter = selection.connections.map(|wanted| of_connections(&builder, Arc::clone(wanted)));
        let mut builder = builder.with_row_groups(groups).with_projection(mask).with_batch_size(rows_max);
        if let Some(filter) = filter {
            builder = builder.with_row_filter(filter);
        }
        let reader = builder.build();
        Ok(Self { path: path.to_owned(), reader: reader.map_err(|e| table(e.to_string()))?, is_broken: false })
    }

    /// Everything that `parse` makes of the batches.
    pub fn rows<T>(self, parse: impl Fn(&RecordBatch) -> Result<Vec<T>, String>) -> Result<Vec<T>, ArchiveError> {
        let mut rows = Vec::new();
        self.each(|batch| {
            rows.extend(parse(&batch)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Passes the batches to `take`. An error of `take` concerns the file.
    pub fn each(self, mut take: impl FnMut(RecordBatch) -> Result<(), String>) -> Result<(), ArchiveError> {
        let path = self.path.clone();
        for batch in self {
            take(batch?).map_err(|detail| ArchiveError::Table { path: path.clone(), detail })?;
        }
        Ok(())
    }
}

impl Iterator for TableReader {
    type Item = Result<RecordBatch, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken {
            return None;
        }
        let Self { path, reader, .. } = self;
        let batch = guarded(path, || {
            let batch = reader.next().transpose();
            batch.map_err(|e| ArchiveError::Table { path: path.clone(), detail: e.to_string() })
        });
        self.is_broken = batch.is_err();
        batch.transpose()
    }
}

/// The bloom filters of one file's connection ids, one for each row group.
pub struct ConnectionFilters(Vec<Option<Sbbf>>);

impl ConnectionFilters {
    pub fn open(store: &dyn Store, path: &str, dataset: Dataset) -> Result<Self, ArchiveError> {
        let blob = store.read(path)?;
        let table = |detail: String| ArchiveError::Table { path: path.to_owned(), detail };
        guarded(path, || {
            let builder = ParquetRecordBatchReaderBuilder::try_new(blob).map_err(|e| table(e.to_string()))?;
            let at = schema_of(dataset).index_of(column::CONNECTION_ID).map_err(|e| table(e.to_string()))?;
            let groups = 0..builder.metadata().num_row_groups();
            let filters = groups.map(|group| builder.get_row_group_column_bloom_filter(group, at));
            filters.collect::<Result<_, _>>().map(Self).map_err(|e| table(e.to_string()))
        })
    }

    /// Whether the file can have rows of the connection. A false yes is rare; a false no never happens.
    pub fn may_hold(&self, id: &ConnectionId) -> bool {
        self.0.iter().any(|filter| filter.as_ref().is_none_or(|filter| filter.check(id.as_str())))
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.0.iter().flatten().map(|filter| filter.num_blocks() * 32).sum()
    }
}

/// Decodes some text columns to dictionaries, so that repeated values are not copied for each row.
fn with_dictionaries(
    builder: ParquetRecordBatchReaderBuilder<Blob>,
    blob: Blob,
    columns: &[&str],
) -> Result<ParquetRecordBatchReaderBuilder<Blob>, ParquetError> {
    if columns.is_empty() {
        return Ok(builder);
    }
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let field = |field: &FieldRef| match columns.contains(&field.name().as_str()) {
        true => Arc::new(field.as_ref().clone().with_data_type(dictionary.clone())),
        false => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = builder.schema().fields().iter().map(field).collect();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
    let metadata = ArrowReaderMetadata::try_new(builder.metadata().clone(), options)?;
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(blob, metadata))
}

/// For each row group, decodes the connection ids first, and then only the wanted rows.
fn of_connections(builder: &ParquetRecordBatchReaderBuilder<Blob>, wanted: Arc<ConnectionIds>) -> RowFilter {
    let mask = ProjectionMask::columns(builder.parquet_schema(), [column::CONNECTION_ID]);
    let is_wanted = move |batch: RecordBatch| {
        let ids = batch.column(0).as_string_opt::<i32>();
        let ids = ids.ok_or_else(|| ArrowError::SchemaError("the connection ids are not text".to_owned()))?;
        let found = (0..ids.len()).map(|at| Some(ids.is_valid(at) && wanted.contains(ids.value(at))));
        Ok(BooleanArray::from_iter(found))
    };
    RowFilter::new(vec![Box::new(ArrowPredicateFn::new(mask, is_wanted))])
}

/// The Parquet decoder panics on some damaged files: report such a file as unreadable.
fn guarded<T>(path: &str, read: impl FnOnce() -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        let detail = "the file is damaged, and its decoder failed on it".to_owned();
        Err(ArchiveError::Table { path: path.to_owned(), detail })
    })
}

/// A smaller number of rows in each batch if events are large.
fn batch_rows(groups: &[RowGroupMetaData]) -> usize {
    let average = |group: &RowGroupMetaData| {
        let bytes = usize::try_from(group.total_byte_size()).unwrap_or(0);
        bytes / usize::try_from(group.num_rows()).unwrap_or(1).max(1)
    };
    let largest = groups.iter().map(average).max().unwrap_or(1).max(1);
    (BATCH_BYTES_MAX / largest).clamp(1, BATCH_ROWS_MAX)
}

/// Finds columns that a damaged footer places outside the file.
fn misplaced(groups: &[RowGroupMetaData], bytes: u64) -> Option<String> {
    let end = i64::try_from(bytes).unwrap_or(i64::MAX);
    let is_inside = |start: i64, length: i64| {
        start >= 0 && length >= 0 && start.checked_add(length).is_some_and(|column_end| column_end <= end)
    };
    let columns = groups.iter().flat_map(RowGroupMetaData::columns);
    let outside = columns.into_iter().find(|column| {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        !is_inside(start, column.compressed_size()) || column.num_values() < 0 || column.uncompressed_size() < 0
    });
    outside.map(|column| format!("column {} is placed outside the file", column.column_path()))
}

fn may_hold(group: &RowGroupMetaData, range: Range) -> bool {
    let times = group.columns().iter().find(|c| c.column_path().string() == column::EVENT_TIME_NS);
    let Some(Statistics::Int64(times)) = times.and_then(|c| c.statistics()) else { return true };
    match (times.min_opt(), times.max_opt()) {
        (Some(min), Some(max)) => *min < range.end.nanos() && range.start.nanos() <= *max,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::{ColumnChunkMetaData, ColumnChunkMetaDataBuilder};

    use super::super::super::tests::{at, events};
    use super::super::file_of;
    use super::*;

    /// The row group of a file with three events: at midnight and in the two minutes after it.
    fn group() -> RowGroupMetaData {
        let store = file_of(&events("2026-11-01", 0, 3));
        let builder = ParquetRecordBatchReaderBuilder::try_new(store.read("file").unwrap()).unwrap();
        builder.metadata().row_group(0).clone()
    }

    #[test]
    fn batches_of_large_events_have_fewer_rows() {
        let of = |rows: i64, bytes: usize| {
            let bytes = i64::try_from(bytes).unwrap();
            group().into_builder().set_num_rows(rows).set_total_byte_size(bytes).build().unwrap()
        };
        for (groups, expected) in [
            (vec![], BATCH_ROWS_MAX),
            (vec![of(0, 0)], BATCH_ROWS_MAX),
            (vec![of(1_000, 1_000)], BATCH_ROWS_MAX),
            (vec![of(1_000, 1_000 * (BATCH_BYTES_MAX / 100))], 100),
            (vec![of(1_000, 1_000), of(2, 2 * BATCH_BYTES_MAX / 3)], 3),
            (vec![of(1, BATCH_BYTES_MAX)], 1),
            (vec![of(1, 3 * BATCH_BYTES_MAX)], 1),
        ] {
            assert_eq!(batch_rows(&groups), expected);
        }
    }

    #[test]
    fn a_column_outside_its_file_is_named() {
        let with = |change: fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder| {
            let mut columns = group().columns().to_vec();
            let last: ColumnChunkMetaData = columns.pop().unwrap();
            columns.push(change(last.into_builder()).build().unwrap());
            group().into_builder().set_column_metadata(columns).build().unwrap()
        };
        let end =
            group().columns().iter().map(ColumnChunkMetaData::byte_range).map(|(start, length)| start + length).max();
        let end = end.unwrap();
        assert_eq!((misplaced(&[group()], end), misplaced(&[], 0)), (None, None));
        assert!(misplaced(&[group()], end - 1).is_some_and(|said| said.ends_with("is placed outside the file")));
        let empty = with(|b| b.set_total_compressed_size(0).set_total_uncompressed_size(0).set_num_values(0));
        assert_eq!(misplaced(&[empty], end), None);
        for (what, group) in [
            ("starts before it", with(|b| b.set_dictionary_page_offset(Some(-1)))),
            ("its pages start before it", with(|b| b.set_dictionary_page_offset(None).set_data_page_offset(-1))),
            ("starts at its end", with(|b| b.set_dictionary_page_offset(Some(i64::MAX)))),
            ("is shorter than nothing", with(|b| b.set_total_compressed_size(-1))),
            ("is longer than any file", with(|b| b.set_total_compressed_size(i64::MAX))),
            ("holds fewer values than none", with(|b| b.set_num_values(-1))),
            ("decodes to fewer bytes than none", with(|b| b.set_total_uncompressed_size(-1))),
        ] {
            assert!(misplaced(&[self::group(), group], end).is_some(), "a column that {what}");
        }
    }

    #[test]
    fn a_row_group_is_decoded_if_it_can_hold_a_time_in_the_range() {
        for (from, to, expected) in [
            ("2026-10-31T00:00:00Z", "2026-11-01T00:00:00Z", false),
            ("2026-10-31T00:00:00Z", "2026-11-01T00:00:00.000000001Z", true),
            ("2026-11-01T00:01:30Z", "2026-11-01T00:01:40Z", true),
            ("2026-11-01T00:02:00Z", "2026-11-02T00:00:00Z", true),
            ("2026-11-01T00:02:00.000000001Z", "2026-11-02T00:00:00Z", false),
        ] {
            assert_eq!(may_hold(&group(), Range::new(at(from), at(to))), expected, "{from} to {to}");
        }
    }
}

//! Copies row groups from one file into another unchanged: they are neither decoded nor encoded again.
//!
//! A column chunk decodes to rows by its bytes and its description in the footer alone. If a row group has the same bytes and the
//! same description in the new file, it holds the same rows. So the ledger's digest of the source file still holds for these
//! rows.

use std::ops::Range;
use std::sync::Arc;

use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::statistics::Statistics;

use super::super::store::{Blob, Store, StoreError, Verb};
use super::super::{ArchiveError, FileEntry};
use super::RowsDigest;
use super::reader::guarded;
use super::tuning::GROUP_ROWS_MIN;

/// Consecutive row groups of a file.
#[derive(Clone)]
pub struct Groups {
    path: String,
    blob: Blob,
    metadata: Arc<ParquetMetaData>,
    picked: Range<usize>,
}

/// Row groups of a file that were copied to a new file, from its row group `at` on.
pub struct Spliced {
    pub at: usize,
    pub groups: Groups,
    pub rows: u64,
    pub digest: RowsDigest,
}

impl Groups {
    /// Opens a file for all its row groups; any damage is an error.
    ///
    /// # Errors
    /// When the store fails, or the file is no table.
    pub fn open(store: &dyn Store, path: &str) -> Result<Self, ArchiveError> {
        let blob = store.read(path)?;
        let read = || {
            let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
            reader.parse_and_finish(&blob).map(Arc::new).map_err(|e| table(path, &e))
        };
        let metadata = guarded(path, read)?;
        let picked = 0..metadata.num_row_groups();
        Ok(Self { path: path.to_owned(), blob, metadata, picked })
    }

    /// Opens a live file whose row groups are large enough to be copied; `None` if they are not.
    ///
    /// # Errors
    /// As [`Groups::open`], and when the file differs from the ledger.
    pub fn whole(store: &dyn Store, entry: &FileEntry) -> Result<Option<Self>, ArchiveError> {
        let groups = Self::open(store, &entry.path)?;
        if groups.picked.clone().any(|group| groups.rows_of(group) < GROUP_ROWS_MIN) {
            return Ok(None);
        }
        groups.checked(entry).map(Some)
    }

    /// Returns these row groups if the file's bytes agree with the ledger.
    ///
    /// # Errors
    /// When they differ, or cannot be read.
    pub fn checked(self, entry: &FileEntry) -> Result<Self, ArchiveError> {
        let found = self.blob.digest().map_err(|e| StoreError::io(Verb::Read, &entry.path, e))?;
        if found != entry.sha256 {
            let (found, expected) = (found.to_string(), entry.sha256.to_string());
            return Err(ArchiveError::FileAltered {
                path: entry.path.clone(),
                bytes: self.blob.size(),
                found,
                expected,
            });
        }
        Ok(self)
    }

    /// Some of these row groups, by their numbers in the file.
    pub fn only(&self, picked: Range<usize>) -> Self {
        Self { picked, ..self.clone() }
    }

    pub fn numbers(&self) -> Range<usize> {
        self.picked.clone()
    }

    pub fn count(&self) -> usize {
        self.picked.len()
    }

    /// Number of rows in a row group, by its number in the file.
    pub fn rows_of(&self, group: usize) -> u64 {
        u64::try_from(self.metadata.row_group(group).num_rows()).unwrap_or(0)
    }

    /// The smallest and largest time of a row group in microseconds, from the file's statistics; `None` if `column` has nulls or
    /// no statistics.
    pub fn times_of(&self, group: usize, column: &str) -> Option<(i64, i64)> {
        let columns = self.metadata.row_group(group).columns();
        let chunk = columns.iter().find(|chunk| chunk.column_path().string() == column)?;
        match chunk.statistics()? {
            Statistics::Int64(times) => Some((*times.min_opt()?, *times.max_opt()?)),
            _ => None,
        }
    }

    pub fn blob(&self) -> &Blob {
        &self.blob
    }

    /// The chunks of one row group, counted from the first, in the form that a file writer takes.
    ///
    /// # Errors
    /// When the chunks cannot be read.
    pub fn chunks(&self, group: usize) -> Result<(u64, Vec<ColumnCloseResult>), ArchiveError> {
        let group = self.picked.start + group;
        let chunks = self.metadata.row_group(group);
        let rows = u64::try_from(chunks.num_rows()).unwrap_or(0);
        let close = |(at, chunk): (usize, &ColumnChunkMetaData)| {
            Ok(ColumnCloseResult {
                bytes_written: u64::try_from(chunk.compressed_size()).unwrap_or(0),
                rows_written: rows,
                metadata: chunk.clone(),
                bloom_filter: Sbbf::read_from_column_chunk(chunk, &self.blob)?,
                column_index: self.column_index(group, at).cloned(),
                offset_index: self.offset_index(group, at).cloned(),
            })
        };
        let closes = chunks.columns().iter().enumerate().map(close).collect::<Result<_, ParquetError>>();
        Ok((rows, closes.map_err(|e| table(&self.path, &e))?))
    }

    /// Whether `other` holds the row groups of `self` unchanged and consecutive, from its row group `first` on.
    ///
    /// # Errors
    /// When one of the files cannot be read.
    pub fn stand_in(&self, other: &Self, first: usize) -> Result<bool, ArchiveError> {
        if first + self.count() > other.count() {
            return Ok(false);
        }
        for (at, group) in self.picked.clone().enumerate() {
            let ours = self.metadata.row_group(group);
            let theirs = other.metadata.row_group(first + at);
            if ours.num_rows() != theirs.num_rows() || ours.num_columns() != theirs.num_columns() {
                return Ok(false);
            }
            for column in 0..ours.num_columns() {
                if !self.is_same_chunk((group, column), other, (first + at, column))? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn is_same_chunk(&self, our: (usize, usize), other: &Self, their: (usize, usize)) -> Result<bool, ArchiveError> {
        let ours = self.metadata.row_group(our.0).column(our.1);
        let theirs = other.metadata.row_group(their.0).column(their.1);
        let of = |groups: &Self, (start, length): (u64, u64)| {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            groups.blob.get_bytes(start, length).map_err(|e| table(&groups.path, &e))
        };
        let filter = |groups: &Self, chunk: &ColumnChunkMetaData| match chunk.bloom_filter_offset() {
            None => Ok(None),
            Some(start) => {
                let length = chunk.bloom_filter_length().and_then(|length| u64::try_from(length).ok());
                of(groups, (u64::try_from(start).unwrap_or(u64::MAX), length.unwrap_or(u64::MAX))).map(Some)
            }
        };
        let is_described_alike = describe(ours) == describe(theirs)
            && ours.statistics() == theirs.statistics()
            && self.column_index(our.0, our.1) == other.column_index(their.0, their.1)
            && pages(self.offset_index(our.0, our.1), ours) == pages(other.offset_index(their.0, their.1), theirs);
        Ok(is_described_alike
            && of(self, ours.byte_range())? == of(other, theirs.byte_range())?
            && filter(self, ours)? == filter(other, theirs)?)
    }

    fn column_index(&self, group: usize, column: usize) -> Option<&ColumnIndexMetaData> {
        let index = self.metadata.column_index()?.get(group)?.get(column)?;
        (*index != ColumnIndexMetaData::NONE).then_some(index)
    }

    fn offset_index(&self, group: usize, column: usize) -> Option<&OffsetIndexMetaData> {
        self.metadata.offset_index()?.get(group)?.get(column)
    }
}

/// A footer's description of a chunk, without its offset in the file.
fn describe(chunk: &ColumnChunkMetaData) -> impl PartialEq {
    let data = chunk.data_page_offset() - chunk.dictionary_page_offset().unwrap_or(0);
    (
        (chunk.column_descr_ptr(), chunk.compression(), *chunk.encodings_mask(), chunk.num_values()),
        (chunk.compressed_size(), chunk.uncompressed_size(), chunk.dictionary_page_offset().map(|_| data)),
    )
}

/// The pages of a chunk: their offsets in the chunk, their sizes and their first rows.
fn pages(index: Option<&OffsetIndexMetaData>, chunk: &ColumnChunkMetaData) -> Option<Vec<(i64, i32, i64)>> {
    let (start, _) = chunk.byte_range();
    let start = i64::try_from(start).unwrap_or(i64::MAX);
    let locations = index?.page_locations.iter();
    Some(locations.map(|page| (page.offset - start, page.compressed_page_size, page.first_row_index)).collect())
}

fn table(path: &str, error: &ParquetError) -> ArchiveError {
    ArchiveError::Table { path: path.to_owned(), detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use parquet::basic::{Compression, Encoding};
    use parquet::file::metadata::{ColumnChunkMetaDataBuilder, ParquetMetaDataBuilder, RowGroupMetaData};

    use super::super::super::random::Nonce;
    use super::super::super::tests::events;
    use super::super::super::{Dataset, MemoryStore};
    use super::super::{TableWriter, Tier, file_of};
    use super::*;

    fn groups(date: &str) -> Groups {
        Groups::open(&file_of(&events(date, 0, 50)), "file").unwrap()
    }

    /// The same file with another description.
    fn described(groups: &Groups, change: &dyn Fn(ParquetMetaData) -> ParquetMetaData) -> Groups {
        let metadata = Arc::new(change(groups.metadata.as_ref().clone()));
        Groups { metadata, ..groups.clone() }
    }

    fn with_group(metadata: ParquetMetaData, group: RowGroupMetaData) -> ParquetMetaData {
        ParquetMetaDataBuilder::new_from_metadata(metadata).set_row_groups(vec![group]).build()
    }

    /// Changes the description of a column that is neither the first nor the last.
    fn with_column(
        metadata: ParquetMetaData,
        name: &str,
        change: fn(ColumnChunkMetaData) -> ColumnChunkMetaDataBuilder,
    ) -> ParquetMetaData {
        let mut columns = metadata.row_group(0).columns().to_vec();
        let at = columns.iter().position(|chunk| chunk.column_path().string() == name).unwrap();
        columns[at] = change(columns[at].clone()).build().unwrap();
        let group = metadata.row_group(0).clone().into_builder().set_column_metadata(columns).build().unwrap();
        with_group(metadata, group)
    }

    #[test]
    fn copied_row_groups_are_found_in_the_new_file() {
        let (first, second) = (groups("2026-11-01"), groups("2026-11-02"));
        let store = MemoryStore::new();
        let mut table = TableWriter::create(&store, Dataset::Connections, Tier::Sealed, 1_000_000, Nonce(7)).unwrap();
        let times = (crate::model::Instant::EARLIEST, crate::model::Instant::LATEST);
        assert_eq!([&first, &second].map(|groups| table.splice(groups, times).unwrap()), [0, 1]);
        table.finish(|_| "both".to_owned()).unwrap();
        let both = Groups::open(&store, "both").unwrap();
        for (groups, expected) in
            [(&first, [true, false, false]), (&second, [false, true, false]), (&both, [true, false, false])]
        {
            assert_eq!([0, 1, 2].map(|at| groups.stand_in(&both, at).unwrap()), expected);
        }
    }

    /// The same bytes with another description can decode to other rows: then the source file's digest says nothing about them.
    #[test]
    fn equal_bytes_with_another_description_are_another_row_group() {
        type Change = Box<dyn Fn(ParquetMetaData) -> ParquetMetaData>;
        let devices = |change: fn(ColumnChunkMetaData) -> ColumnChunkMetaDataBuilder| -> Change {
            Box::new(move |metadata| with_column(metadata, "device_id", change))
        };
        let page = |change: fn(&mut OffsetIndexMetaData)| -> Change {
            Box::new(move |metadata| {
                let mut index = metadata.offset_index().unwrap().clone();
                change(&mut index[0][3]);
                ParquetMetaDataBuilder::new_from_metadata(metadata).set_offset_index(Some(index)).build()
            })
        };
        let changes: Vec<(&str, Change)> = vec![
            (
                "rows",
                Box::new(|metadata| {
                    let group = metadata.row_group(0).clone().into_builder().set_num_rows(49).build().unwrap();
                    with_group(metadata, group)
                }),
            ),
            ("values", devices(|chunk| chunk.into_builder().set_num_values(49))),
            ("compression", devices(|chunk| chunk.into_builder().set_compression(Compression::SNAPPY))),
            ("encodings", devices(|chunk| chunk.into_builder().set_encodings(vec![Encoding::BYTE_STREAM_SPLIT]))),
            ("size of what it decodes to", devices(|chunk| chunk.into_builder().set_total_uncompressed_size(1))),
            (
                "dictionary",
                devices(|chunk| {
                    let start = chunk.data_page_offset();
                    chunk.into_builder().set_dictionary_page_offset(Some(start)).set_data_page_offset(start + 1)
                }),
            ),
            (
                "statistics",
                Box::new(|metadata| {
                    with_column(metadata, "event_type", |chunk| chunk.into_builder().clear_statistics())
                }),
            ),
            ("filter", devices(|chunk| chunk.into_builder().set_bloom_filter_offset(None))),
            (
                "filter of another column",
                devices(|chunk| {
                    let start = chunk.bloom_filter_offset().unwrap();
                    chunk.into_builder().set_bloom_filter_offset(Some(start + 1))
                }),
            ),
            (
                "values of its pages",
                Box::new(|metadata| ParquetMetaDataBuilder::new_from_metadata(metadata).set_column_index(None).build()),
            ),
            ("first row of a page", page(|index| index.page_locations[0].first_row_index += 1)),
            ("place of a page", page(|index| index.page_locations[0].offset += 1)),
            ("size of a page", page(|index| index.page_locations[0].compressed_page_size += 1)),
            ("number of pages", page(|index| index.page_locations.clear())),
        ];
        let groups = groups("2026-11-01");
        assert!(groups.stand_in(&described(&groups, &|metadata| metadata), 0).unwrap());
        for (what, change) in changes {
            let other = described(&groups, &change);
            assert!(!groups.stand_in(&other, 0).unwrap_or(false), "another {what}");
            assert!(!other.stand_in(&groups, 0).unwrap_or(false), "another {what}, the other way");
        }
    }
}

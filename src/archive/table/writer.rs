//! Writes one Parquet file, streamed to the store, and collects its description for the ledger.

use std::io::{self, Write};

use arrow::array::{AsArray, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::model::{Dataset, Digest, Instant};
use crate::store::{FileWriter, Store, StoreError, Verb};

use super::super::ArchiveError;
use super::super::random::Nonce;
use super::order::times_of;
use super::tuning::{GROUP_BYTES_MAX, GROUP_ROWS_MAX, properties};
use super::{column, schema_of};

/// Columns of fewer rows are encoded on one thread.
const ROWS_A_THREAD_MIN: usize = 1_024;

/// The description of a written file for the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub rows: u64,
    pub bytes: u64,
    pub sha256: Digest,
    pub first: Option<Instant>,
    pub last: Option<Instant>,
}

/// A table file that is being written.
pub struct TableWriter {
    /// The file's name in errors: it has no final name before it is finished.
    label: String,
    writer: SerializedFileWriter<Sink>,
    columns: ArrowRowGroupWriterFactory,
    /// The current row group.
    group: Option<Group>,
    rows: u64,
    first: Option<i64>,
    last: Option<i64>,
}

struct Group {
    columns: Vec<ArrowColumnWriter>,
    rows: usize,
    text_bytes: usize,
}

impl TableWriter {
    /// Starts a file of a dataset. `rows` is the expected number of rows, and the footer holds `nonce`.
    ///
    /// # Errors
    /// When the store cannot create the file.
    pub fn create(store: &dyn Store, dataset: Dataset, rows: u64, nonce: Nonce) -> Result<Self, ArchiveError> {
        let label = format!("a new file of {dataset}");
        let sink = Sink { file: Some(store.create()?), hasher: Sha256::new(), bytes: 0, failure: None };
        let properties = properties(dataset, rows, nonce);
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let (writer, columns) = ArrowWriter::try_new_with_options(sink, schema_of(dataset), options)
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(|e| ArchiveError::Table { path: label.clone(), detail: e.to_string() })?;
        Ok(Self { label, writer, columns, group: None, rows: 0, first: None, last: None })
    }

    /// Adds rows, which must come after all earlier rows in time order.
    ///
    /// # Errors
    /// When the store fails, or the batch does not belong to the dataset.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArchiveError> {
        let table = |path: &str, detail: String| ArchiveError::Table { path: path.to_owned(), detail };
        let times = times_of(batch).map_err(|detail| table(&self.label, detail))?;
        for time in times.iter().flatten() {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = Some(self.last.map_or(time, |last| last.max(time)));
        }
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let room = GROUP_ROWS_MAX - self.group.as_ref().map_or(0, |group| group.rows);
            let now = rest.slice(0, room.min(rest.num_rows()));
            rest = rest.slice(now.num_rows(), rest.num_rows() - now.num_rows());
            let written = self.encode(&now);
            self.named(written)?;
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let text = batch.column_by_name(column::RAW).and_then(|c| c.as_string_opt::<i32>());
        let offsets = text.map(StringArray::value_offsets).and_then(|o| Some(o.last()? - o.first()?));
        let index = self.writer.flushed_row_groups().len();
        let group = match &mut self.group {
            Some(group) => group,
            none => none.insert(Group { columns: self.columns.create_column_writers(index)?, rows: 0, text_bytes: 0 }),
        };
        let schema = batch.schema();
        let mut leaves = Vec::with_capacity(group.columns.len());
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            leaves.extend(compute_leaves(field, column)?);
        }
        assert_eq!(leaves.len(), group.columns.len(), "BUG: a writer for every column");
        if batch.num_rows() < ROWS_A_THREAD_MIN {
            group.columns.iter_mut().zip(&leaves).try_for_each(|(writer, leaf)| writer.write(leaf))?;
        } else {
            let columns = group.columns.par_iter_mut().zip(&leaves).with_max_len(1);
            columns.try_for_each(|(writer, leaf)| writer.write(leaf))?;
        }
        group.rows += batch.num_rows();
        group.text_bytes += offsets.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        if group.rows >= GROUP_ROWS_MAX || group.text_bytes > GROUP_BYTES_MAX { self.close_group() } else { Ok(()) }
    }

    fn close_group(&mut self) -> Result<(), ParquetError> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let mut row_group = self.writer.next_row_group()?;
        let is_small = group.rows < ROWS_A_THREAD_MIN;
        let closed: Result<Vec<_>, ParquetError> = match is_small {
            true => group.columns.into_iter().map(ArrowColumnWriter::close).collect(),
            false => group.columns.into_par_iter().with_max_len(1).map(ArrowColumnWriter::close).collect(),
        };
        closed?.into_iter().try_for_each(|column| column.append_to_row_group(&mut row_group))?;
        row_group.close().map(drop)
    }

    /// The store's own error if there is one, else the file's error.
    fn named<T>(&mut self, outcome: Result<T, ParquetError>) -> Result<T, ArchiveError> {
        outcome.map_err(|e| named(&self.label, self.writer.inner_mut().failure.take(), &e))
    }

    /// Completes the file, and makes it durable under the name that `name` derives from its hash.
    ///
    /// # Errors
    /// When the store fails: then discard the file.
    pub fn finish(mut self, name: impl FnOnce(Digest) -> String) -> Result<Written, ArchiveError> {
        let finished = self.close_group().and_then(|()| self.writer.finish().map(drop));
        self.named(finished)?;
        // The writer has flushed all data; consuming it would finish it a second time.
        let sink = self.writer.inner_mut();
        let sha256 = Digest(std::mem::take(&mut sink.hasher).finalize().into());
        let bytes = sink.bytes;
        sink.file.take().expect("BUG: a file is finished once").finish(&name(sha256))?;
        Ok(Written {
            rows: self.rows,
            bytes,
            sha256,
            first: self.first.map(Instant::from_nanos),
            last: self.last.map(Instant::from_nanos),
        })
    }
}

/// The store's own error if there is one: it names operation, path and cause.
fn named(path: &str, failure: Option<io::Error>, error: &ParquetError) -> ArchiveError {
    match failure {
        Some(source) => StoreError::io(Verb::Write, path, source).into(),
        None => ArchiveError::Table { path: path.to_owned(), detail: error.to_string() },
    }
}

/// Hashes and counts the bytes for the store, and keeps the store's error, which the Parquet error would hide.
struct Sink {
    file: Option<Box<dyn FileWriter>>,
    hasher: Sha256,
    bytes: u64,
    failure: Option<io::Error>,
}

impl Write for Sink {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Err(io::Error::other("written to after its end")) };
        match file.write(buffer) {
            Ok(n) => {
                self.hasher.update(&buffer[..n]);
                self.bytes += n as u64;
                Ok(n)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Err(e),
            Err(e) => {
                let shown = io::Error::new(e.kind(), e.to_string());
                self.failure = Some(e);
                Err(shown)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::{ParquetMetaDataReader, RowGroupMetaData};

    use super::super::super::tests::{event, events, now};
    use super::super::{BATCH_ROWS_MAX, event_batch};
    use super::*;
    use crate::model::{EventRow, Stream};
    use crate::store::MemoryStore;

    /// The limits of rows and text bound the memory for decoding one row group.
    #[test]
    fn a_row_group_ends_at_its_limit_of_rows_or_text() {
        let groups = |batch: &RecordBatch, times: usize| {
            let store = MemoryStore::new();
            let rows = (batch.num_rows() * times) as u64;
            let mut table = TableWriter::create(&store, Dataset::Connections, rows, Nonce(7)).unwrap();
            (0..times).for_each(|_| table.write(batch).unwrap());
            table.finish(|_| "file".to_owned()).unwrap();
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&store.read("file").unwrap()).unwrap();
            metadata.row_groups().iter().map(RowGroupMetaData::num_rows).collect::<Vec<_>>()
        };
        let batch = |rows: &[EventRow]| event_batch(Stream::Connections, rows).unwrap();
        let many = batch(&events("2026-11-01", 0, BATCH_ROWS_MAX as u64 - 1));
        let full = GROUP_ROWS_MAX / many.num_rows();
        let rest = (full + 1) * many.num_rows() - GROUP_ROWS_MAX;
        assert_eq!(groups(&many, full + 1), [GROUP_ROWS_MAX, rest].map(|rows| i64::try_from(rows).unwrap()));
        let text = |part: usize| bytes::Bytes::from(vec![b' '; GROUP_BYTES_MAX / part]);
        let large = batch(&[EventRow { raw: text(4).into(), ..event("e", now()) }]);
        assert_eq!(groups(&large, 6), [5, 1]);
        // For a slice of a batch, only its own text counts.
        let row = |_| EventRow { raw: text(8).into(), ..event("e", now()) };
        let half = batch(&(0..4).map(row).collect::<Vec<_>>()).slice(2, 2);
        assert_eq!(groups(&half, 3), [6]);
    }

    /// A file writer that returns these errors first, and then accepts everything.
    struct Failing(Vec<io::ErrorKind>);

    impl Write for Failing {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            self.0.pop().map_or(Ok(buffer.len()), |kind| Err(kind.into()))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl FileWriter for Failing {
        fn finish(self: Box<Self>, _: &str) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[test]
    fn an_interrupted_write_is_retried() {
        use io::ErrorKind::{Interrupted, StorageFull};
        let sink = |errors: &[io::ErrorKind]| Sink {
            file: Some(Box::new(Failing(errors.to_vec()))),
            hasher: Sha256::new(),
            bytes: 0,
            failure: None,
        };
        let mut interrupted = sink(&[Interrupted, Interrupted]);
        interrupted.write_all(b"rows").unwrap();
        assert!(interrupted.failure.is_none() && interrupted.bytes == 4);
        let mut full = sink(&[StorageFull]);
        assert_eq!(full.write_all(b"rows").unwrap_err().kind(), StorageFull);
        // The store's error is reported, not Parquet's error about it.
        let error = named("file", full.failure.take(), &ParquetError::General("no".to_owned()));
        assert!(
            matches!(&error, ArchiveError::Store(StoreError::Io { source, .. }) if source.kind() == StorageFull),
            "{error}"
        );
        assert_eq!(full.bytes, 0);
    }
}

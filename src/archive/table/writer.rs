//! One Parquet file, written once and streamed to the store, with everything the ledger says about it.

use std::io::{self, Write};

use arrow::array::{AsArray, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use sha2::{Digest as _, Sha256};

use crate::model::{Digest, Instant};

use super::super::store::{FileWriter, Store, StoreError, Verb};
use super::super::{ArchiveError, Dataset};
use super::order::times_of;
use super::tuning::{GROUP_BYTES_MAX, properties};
use super::{Tier, column, schema_of};

/// What was written, as the ledger records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub rows: u64,
    pub bytes: u64,
    pub sha256: Digest,
    pub first: Option<Instant>,
    pub last: Option<Instant>,
}

/// A table file in the making.
pub struct TableWriter {
    path: String,
    writer: ArrowWriter<Sink>,
    rows: u64,
    first: Option<i64>,
    last: Option<i64>,
    group_bytes: usize,
}

impl TableWriter {
    /// Starts a file at `path`; `rows` is how many are expected.
    ///
    /// # Errors
    /// When the store cannot create the file.
    pub fn create(
        store: &dyn Store,
        path: &str,
        dataset: Dataset,
        tier: Tier,
        rows: u64,
    ) -> Result<Self, ArchiveError> {
        let file = store.create(path)?;
        let sink = Sink { file: Some(file), hasher: Sha256::new(), bytes: 0, failure: None };
        let options =
            ArrowWriterOptions::new().with_properties(properties(dataset, tier, rows)).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(sink, schema_of(dataset), options)
            .map_err(|e| ArchiveError::Table { path: path.to_owned(), detail: e.to_string() })?;
        Ok(Self { path: path.to_owned(), writer, rows: 0, first: None, last: None, group_bytes: 0 })
    }

    /// Adds rows, which come after those before in time order.
    ///
    /// # Errors
    /// When the store fails, or the batch is not one of the dataset.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ArchiveError> {
        let table = |path: &str, detail: String| ArchiveError::Table { path: path.to_owned(), detail };
        let times = times_of(batch).map_err(|detail| table(&self.path, detail))?;
        for time in times.iter().flatten() {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = Some(self.last.map_or(time, |last| last.max(time)));
        }
        let text = batch.column_by_name(column::RAW).and_then(|c| c.as_string_opt::<i32>());
        let text_bytes = text.map_or(0, |t| t.value_data().len());
        let rows_before = self.writer.in_progress_rows();
        let mut outcome = self.writer.write(batch);
        let is_same_group = self.writer.in_progress_rows() == rows_before + batch.num_rows();
        self.group_bytes = if is_same_group { self.group_bytes + text_bytes } else { text_bytes };
        if outcome.is_ok() && self.group_bytes > GROUP_BYTES_MAX {
            outcome = self.writer.flush();
            self.group_bytes = 0;
        }
        if let Err(e) = outcome {
            let failure = self.writer.inner_mut().failure.take();
            return Err(named(&self.path, failure, &e));
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Completes the file and makes it durable.
    ///
    /// # Errors
    /// When the store fails: the file is then worth nothing.
    pub fn finish(mut self) -> Result<Written, ArchiveError> {
        if let Err(e) = self.writer.finish() {
            let failure = self.writer.inner_mut().failure.take();
            return Err(named(&self.path, failure, &e));
        }
        // The writer has flushed what it held; taking it apart would finish it a second time.
        let sink = self.writer.inner_mut();
        let sha256 = Digest(std::mem::take(&mut sink.hasher).finalize().into());
        let bytes = sink.bytes;
        sink.file.take().expect("BUG: a file is finished once").finish()?;
        Ok(Written {
            rows: self.rows,
            bytes,
            sha256,
            first: self.first.map(Instant::from_nanos),
            last: self.last.map(Instant::from_nanos),
        })
    }
}

/// The store's own error where there is one: it says verb, path and cause.
fn named(path: &str, failure: Option<io::Error>, error: &parquet::errors::ParquetError) -> ArchiveError {
    match failure {
        Some(source) => StoreError::io(Verb::Write, path, source).into(),
        None => ArchiveError::Table { path: path.to_owned(), detail: error.to_string() },
    }
}

/// Hashes and counts what goes to the store, and keeps its error, which Parquet's would hide.
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

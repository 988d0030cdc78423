//! Where a result goes, batch by batch.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::ReportError;

/// Whether more rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    More,
    Enough,
}

/// Takes a result. Contract: `begin` once, then `batch` any number of times, then `finish` once; after an error or
/// `Enough` no more batches come.
pub trait Sink {
    /// # Errors
    /// When the columns cannot be written in this format, or the output fails.
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError>;
    /// # Errors
    /// When the output fails.
    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError>;
    /// # Errors
    /// When the output fails.
    fn finish(&mut self) -> Result<(), ReportError>;
}

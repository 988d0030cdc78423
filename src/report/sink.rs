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

/// Column names, a repeated one with its number: `a`, `a_2`.
pub(super) fn unique_names(schema: &SchemaRef) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for field in schema.fields() {
        let mut name = field.name().clone();
        let mut nth = 2_usize;
        while names.contains(&name) {
            name = format!("{}_{nth}", field.name());
            nth += 1;
        }
        names.push(name);
    }
    names
}

//! The receiver of a result, batch by batch.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::report::ReportError;

/// Whether the sink wants more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    More,
    Enough,
}

/// Receives a result. Contract: `begin` once, then any number of `batch` calls, then `finish` once. After an error or `Enough`,
/// no more batches come. A sink that writes, or has another sink inside, defines `finish`.
pub trait Sink {
    /// # Errors
    /// When the columns cannot be written in this format, or the output fails.
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError>;
    /// # Errors
    /// When the output fails.
    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError>;
    /// # Errors
    /// When the output fails.
    fn finish(&mut self) -> Result<(), ReportError> {
        Ok(())
    }
}

/// Column names; a repeated one gets a number: `a`, `a_2`.
pub fn unique_names(schema: &SchemaRef) -> Vec<String> {
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

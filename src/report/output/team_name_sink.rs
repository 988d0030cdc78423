//! Rows for people: team names replace the column `team_id`. Rows for programs keep the column.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::report::sql::sink::{Flow, Sink};
use crate::report::{ReportError, TeamNames};

/// The column with the ids of teams.
pub const TEAM_ID: &str = "team_id";
const NAME_COLUMN: &str = "team";

/// A sink that replaces ids by names, and passes the rows to the inner sink.
pub struct TeamNameSink<'a> {
    inner: &'a mut dyn Sink,
    names: &'a TeamNames,
    schema: Option<(usize, SchemaRef)>,
}

impl<'a> TeamNameSink<'a> {
    pub fn new(inner: &'a mut dyn Sink, names: &'a TeamNames) -> Self {
        Self { inner, names, schema: None }
    }
}

impl Sink for TeamNameSink<'_> {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        let at = schema.fields().iter().position(|field| field.name() == TEAM_ID);
        let is_free = schema.fields().iter().all(|field| field.name() != NAME_COLUMN);
        let at = at.filter(|at| is_free && *schema.field(*at).data_type() == DataType::Utf8);
        let Some(at) = at else { return self.inner.begin(schema) };
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields[at] = Arc::new(Field::new(NAME_COLUMN, DataType::Utf8, true));
        let schema = Arc::new(Schema::new(fields));
        self.schema = Some((at, schema.clone()));
        self.inner.begin(schema)
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        let Some((at, schema)) = &self.schema else { return self.inner.batch(batch) };
        let labels = batch.column(*at).as_string::<i32>().iter().map(|id| id.map(|id| self.names.label(id)));
        let mut columns = batch.columns().to_vec();
        columns[*at] = Arc::new(StringArray::from_iter(labels)) as ArrayRef;
        let named = RecordBatch::try_new(schema.clone(), columns).expect("BUG: one column of text for another");
        self.inner.batch(&named)
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        self.inner.finish()
    }
}

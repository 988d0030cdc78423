//! A result as a Parquet file.

use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::report::ReportError;
use crate::report::sql::sink::{Flow, Sink, unique_names};

/// Rows are encoded in memory up to this size, then written as one row group.
const ROW_GROUP_BYTES_MAX: usize = 64 << 20;

/// The writer starts when the columns are known.
pub struct Columnar<'a> {
    out: Option<&'a mut (dyn Write + Send)>,
    writer: Option<ArrowWriter<&'a mut (dyn Write + Send)>>,
    metadata: Option<KeyValue>,
}

impl<'a> Columnar<'a> {
    pub fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out: Some(out), writer: None, metadata: None }
    }

    /// Adds a text to the file's key-value metadata.
    pub fn with_metadata(self, key: &str, text: String) -> Self {
        Self { metadata: Some(KeyValue::new(key.to_owned(), text)), ..self }
    }

    fn writer(&mut self) -> &mut ArrowWriter<&'a mut (dyn Write + Send)> {
        self.writer.as_mut().expect("BUG: begun before rows come")
    }
}

/// The name of a type that the writer cannot encode.
fn unwritable(kind: &DataType) -> Option<&'static str> {
    match kind {
        DataType::Interval(_) => Some("INTERVAL"),
        DataType::Union(..) => Some("UNION"),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => unwritable(item.data_type()),
        DataType::Struct(fields) => fields.iter().find_map(|field| unwritable(field.data_type())),
        _ => None,
    }
}

fn failed(error: ParquetError) -> ReportError {
    let detail = error.to_string();
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => ReportError::Output(*error),
            Err(_) => ReportError::Format { format: "parquet", detail },
        },
        _ => ReportError::Format { format: "parquet", detail },
    }
}

impl Sink for Columnar<'_> {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        let names = unique_names(&schema);
        let unwritable = |field: &Arc<Field>| Some((field.clone(), unwritable(field.data_type())?));
        if let Some((field, kind)) = schema.fields().iter().find_map(unwritable) {
            let detail = format!("column {} has values of type {kind}: cast it to VARCHAR", field.name());
            return Err(ReportError::Format { format: "parquet", detail });
        }
        let fields = schema.fields().iter().zip(names).map(|(field, name)| field.as_ref().clone().with_name(name));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let out = self.out.take().expect("BUG: `begin` is called once");
        self.writer = Some(ArrowWriter::try_new(out, schema, Some(properties)).map_err(failed)?);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        let writer = self.writer();
        writer.write(batch).map_err(failed)?;
        if writer.in_progress_size() > ROW_GROUP_BYTES_MAX {
            writer.flush().map_err(failed)?;
        }
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        if let Some(metadata) = self.metadata.take() {
            self.writer().append_key_value_metadata(metadata);
        }
        self.writer().finish().map_err(failed)?;
        Ok(())
    }
}

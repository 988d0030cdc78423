//! Finds columns of a batch by name and type.

use arrow::array::{Array, RecordBatch, StringArray};

/// The column `name`, or a sentence that names it.
pub fn column_of<'a, A: Array + 'static>(batch: &'a RecordBatch, name: &str) -> Result<&'a A, String> {
    let column = batch.column_by_name(name).ok_or_else(|| format!("column {name} is missing"))?;
    column.as_any().downcast_ref().ok_or_else(|| format!("column {name} has a wrong type"))
}

/// The text of a row; `None` for a null.
pub fn text_at(texts: &StringArray, at: usize) -> Option<&str> {
    texts.is_valid(at).then(|| texts.value(at))
}

//! One spelling of a text: an SQL function with the rules by which `annals erase` compares values.

use std::error::Error;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use duckdb::vscalar::{ArrowFunctionSignature, VArrowScalar};

use crate::archive::normal_subject;

/// `one_spelling(text VARCHAR) -> VARCHAR`: the text in its form for comparison, see [`normal_subject`].
pub const SPELLING_FUNCTION: &str = "one_spelling";

pub struct OneSpelling;

impl VArrowScalar for OneSpelling {
    type State = ();

    fn invoke(_: &(), input: RecordBatch) -> Result<ArrayRef, Box<dyn Error>> {
        let texts = input.column(0).as_string_opt::<i32>();
        let texts = texts.ok_or_else(|| format!("{SPELLING_FUNCTION} needs a text"))?;
        Ok(Arc::new(texts.iter().map(|text| text.map(normal_subject)).collect::<StringArray>()))
    }

    fn signatures() -> Vec<ArrowFunctionSignature> {
        vec![ArrowFunctionSignature::exact(vec![DataType::Utf8], DataType::Utf8)]
    }
}

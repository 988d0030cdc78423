//! Compares a file with its intended rows, value by value.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::DataType;

use super::super::store::Store;
use super::super::{ArchiveError, Dataset};
use super::column::{CONNECTION_ID, EVENT_ID, RAW};
use super::connections::Repeated;
use super::{Selection, TableReader, schema_of};

/// For fewer rows, a thread costs more than it saves.
const ROWS_A_THREAD_MIN: usize = 4_000;

/// Reads row groups of a file again, by number (`None`: all). Returns the number of rows, or `None` if the rows differ from
/// `meant`.
///
/// # Errors
/// When the file cannot be read, or is no table of the dataset.
pub fn rows_again(
    store: &dyn Store,
    path: &str,
    dataset: Dataset,
    groups: Option<&[usize]>,
    meant: &[RecordBatch],
) -> Result<Option<u64>, ArchiveError> {
    let schema = schema_of(dataset);
    let names = schema.fields().iter().map(|field| field.name().as_str());
    // Read repeated texts as dictionaries: comparing them needs no copy of each text.
    let texts = schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8);
    let repeated =
        texts.map(|field| field.name().as_str()).filter(|name| ![EVENT_ID, CONNECTION_ID, RAW].contains(name));
    let as_dictionaries: Vec<&str> = repeated.collect();
    let same = |columns: &[&str]| {
        let as_dictionaries: &[&str] = if columns == [RAW] { &[] } else { &as_dictionaries };
        let selection = Selection { columns, groups, as_dictionaries, ..Selection::default() };
        same_rows(meant, columns, TableReader::open(store, path, dataset, selection)?)
    };
    // `raw` is about half of the work.
    let (text, others): (Vec<&str>, Vec<&str>) = names.partition(|name| *name == RAW);
    if text.is_empty() || meant.iter().map(RecordBatch::num_rows).sum::<usize>() < ROWS_A_THREAD_MIN {
        return same(&[]);
    }
    let (text, others) = rayon::join(|| same(&text), || same(&others));
    let (text, others) = (text?, others?);
    Ok(text.filter(|_| text == others))
}

/// `columns` are the columns that were read; empty means all.
fn same_rows(meant: &[RecordBatch], columns: &[&str], found: TableReader) -> Result<Option<u64>, ArchiveError> {
    let mut rest = meant.iter().map(|batch| of_columns(batch, columns));
    let mut next = rest.next();
    let mut count = 0;
    for batch in found {
        let mut batch = batch?;
        count += batch.num_rows() as u64;
        while batch.num_rows() > 0 {
            let Some(expected) = next.take() else { return Ok(None) };
            let rows = expected.num_rows().min(batch.num_rows());
            let (these, those) = (expected.slice(0, rows), batch.slice(0, rows));
            let pairs = those.columns().iter().zip(these.columns());
            if these.num_columns() != those.num_columns()
                || !pairs.into_iter().all(|(found, meant)| is_same(found, meant))
            {
                return Ok(None);
            }
            batch = batch.slice(rows, batch.num_rows() - rows);
            next = Some(expected.slice(rows, expected.num_rows() - rows)).filter(|rest| rest.num_rows() > 0);
            next = next.or_else(|| rest.next());
        }
    }
    Ok(next.is_none().then_some(count))
}

fn is_same(found: &ArrayRef, meant: &ArrayRef) -> bool {
    match (Repeated::of(found), meant.as_string_opt::<i32>()) {
        (Some(found), Some(meant)) => {
            (0..meant.len()).all(|at| found.get(at) == meant.is_valid(at).then(|| meant.value(at)))
        }
        _ => found == meant,
    }
}

fn of_columns(batch: &RecordBatch, names: &[&str]) -> RecordBatch {
    if names.is_empty() {
        return batch.clone();
    }
    let places: Vec<usize> = names.iter().filter_map(|name| batch.schema_ref().index_of(name).ok()).collect();
    batch.project(&places).expect("BUG: places of the batch's own columns")
}

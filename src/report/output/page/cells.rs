//! The first rows of a result, as a page shows them.

use std::borrow::Cow;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::report::output::cell;
use crate::report::sql::sink::{Flow, Sink, unique_names};
use crate::report::{ReportError, Severity, printable};

/// Maximum number of characters in a cell.
const CELL_CHARS_MAX: usize = 160;
/// Maximum number of characters in the tooltip of a cut cell.
const WHOLE_CHARS_MAX: usize = 2_000;

/// A column's name in the table header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnHead {
    pub name: String,
    pub is_number: bool,
}

/// A value as text; the page escapes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cell {
    pub text: String,
    pub class: Cow<'static, str>,
    /// The whole text, if the cell is cut.
    pub whole: String,
    /// The CSS class of a severity.
    pub pill: Cow<'static, str>,
}

/// Keeps the first rows, and counts all rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FirstRows {
    pub columns: Vec<ColumnHead>,
    pub rows: Vec<Vec<Cell>>,
    pub total: u64,
    #[serde(skip)]
    rows_max: usize,
    #[serde(skip)]
    severity_column: Option<usize>,
    /// Stop at the first row that is not kept.
    #[serde(skip)]
    stops_early: bool,
}

impl FirstRows {
    pub fn new(rows_max: usize) -> Self {
        Self { rows_max, ..Self::default() }
    }

    /// Stops the query as soon as there are more rows; `total` then tells only that.
    pub fn without_count(rows_max: usize) -> Self {
        Self { rows_max, stops_early: true, ..Self::default() }
    }
}

impl Sink for FirstRows {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        let kinds = schema.fields().iter().map(|field| cell::is_number(field.data_type()));
        let names = unique_names(&schema).into_iter().zip(kinds);
        self.columns = names.map(|(name, is_number)| ColumnHead { name: printable(&name), is_number }).collect();
        self.severity_column = self.columns.iter().position(|column| column.name == "severity");
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        self.total += batch.num_rows() as u64;
        let wanted = self.rows_max.saturating_sub(self.rows.len()).min(batch.num_rows());
        for row in 0..wanted {
            let cells = batch.columns().iter().enumerate().map(|(at, column)| {
                let cell = cell_of(column, row)?;
                Ok(if self.severity_column == Some(at) { marked(cell) } else { cell })
            });
            self.rows.push(cells.collect::<Result<_, ReportError>>()?);
        }
        Ok(if self.stops_early && self.total > self.rows_max as u64 { Flow::Enough } else { Flow::More })
    }
}

/// A value as a cell of a page.
///
/// # Errors
/// When the value has no text form.
pub fn cell_of(column: &dyn Array, row: usize) -> Result<Cell, ReportError> {
    let failed = |error: arrow::error::ArrowError| ReportError::Format { format: "html", detail: error.to_string() };
    let Some(text) = cell::text(column, row).map_err(failed)? else {
        return Ok(Cell { text: "–".to_owned(), class: "null".into(), ..Cell::default() });
    };
    let kind = column.data_type();
    let class = Cow::Borrowed(match kind {
        kind if cell::is_number(kind) => "n",
        DataType::Timestamp(..) | DataType::Date32 => "t",
        _ => "",
    });
    let text = match kind {
        DataType::Timestamp(..) => text.replacen('T', " ", 1),
        _ => printable(&text),
    };
    let mut ends = text.char_indices().skip(CELL_CHARS_MAX - 1);
    let (Some((end, _)), Some(_)) = (ends.next(), ends.next()) else {
        return Ok(Cell { text, class, ..Cell::default() });
    };
    let whole = text.chars().take(WHOLE_CHARS_MAX).collect();
    Ok(Cell { text: format!("{}…", &text[..end]), class, whole, pill: Cow::default() })
}

fn marked(cell: Cell) -> Cell {
    let pill = cell.text.parse::<Severity>().map_or_else(|_| String::new(), |severity| format!("sev {severity}"));
    Cell { pill: pill.into(), ..cell }
}

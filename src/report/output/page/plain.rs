//! A result as a page with one table, streamed row by row.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use askama::Template;

use crate::report::ReportError;
use crate::report::sql::sink::{Flow, Sink};

use super::cells::{Cell, ColumnHead, FirstRows, cell_of};
use super::failed;
use super::style::Style;

/// The place of the rows: a comment of the template. No data can come before it except column names.
const ROWS: &str = "<!-- rows -->\n";

#[derive(Template)]
#[template(path = "table.html")]
struct TablePage {
    style: Style,
    columns: Vec<ColumnHead>,
}

#[derive(Template)]
#[template(path = "rows.html")]
struct RowPart {
    cells: Vec<Cell>,
}

pub struct HtmlTable<'a> {
    out: &'a mut (dyn Write + Send),
    tail: String,
}

impl<'a> HtmlTable<'a> {
    pub fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, tail: String::new() }
    }
}

impl Sink for HtmlTable<'_> {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        let mut heads = FirstRows::new(0);
        heads.begin(schema)?;
        let page = TablePage { style: Style, columns: heads.columns }.render().map_err(failed)?;
        // Column names are escaped, so the first such comment is the template's own.
        let (head, tail) = page.split_once(ROWS).expect("BUG: the template says where rows go");
        self.out.write_all(head.as_bytes())?;
        self.tail = tail.to_owned();
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| cell_of(column, row)).collect::<Result<_, _>>()?;
            self.out.write_all(RowPart { cells }.render().map_err(failed)?.as_bytes())?;
        }
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        self.out.write_all(self.tail.as_bytes())?;
        Ok(self.out.flush()?)
    }
}

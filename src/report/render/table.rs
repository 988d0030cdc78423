//! A table for people.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use comfy_table::presets;
use comfy_table::{Cell, CellAlignment, ContentArrangement};

use crate::report::ReportError;
use crate::report::cell;
use crate::report::sink::{Flow, Sink};

use super::{Format, Look, printable, unprintable};

/// A table stands in memory whole, and nobody reads more.
const TABLE_ROWS_MAX: usize = 10_000;
/// Characters of a cell on a terminal.
const CELL_WIDTH_MAX: usize = 80;

pub(super) struct Table<'a> {
    out: &'a mut (dyn Write + Send),
    look: Look,
    table: comfy_table::Table,
    rows: usize,
    is_cut: bool,
}

impl<'a> Table<'a> {
    pub fn new(out: &'a mut (dyn Write + Send), look: Look) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        match look.terminal_width {
            Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        Self { out, look, table, rows: 0, is_cut: false }
    }

    fn shown(&self, text: &str) -> String {
        let text = printable(text);
        match self.look.terminal_width {
            Some(_) if text.chars().count() > CELL_WIDTH_MAX => {
                text.chars().take(CELL_WIDTH_MAX - 1).chain(['…']).collect()
            }
            _ => text,
        }
    }
}

impl Sink for Table<'_> {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        let names: Vec<String> = schema.fields().iter().map(|field| printable(field.name())).collect();
        self.table.set_header(names);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        for row in 0..batch.num_rows() {
            if self.rows == TABLE_ROWS_MAX {
                self.is_cut = true;
                return Ok(Flow::Enough);
            }
            let mut cells = Vec::with_capacity(batch.num_columns());
            for column in batch.columns() {
                let text = cell::text(column, row).map_err(unprintable(Format::Table))?.unwrap_or_default();
                let is_number = cell::is_number(column.data_type());
                let alignment = if is_number { CellAlignment::Right } else { CellAlignment::Left };
                cells.push(Cell::new(self.shown(&text)).set_alignment(alignment));
            }
            self.table.add_row(cells);
            self.rows += 1;
        }
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        writeln!(self.out, "{}", self.table)?;
        if self.is_cut {
            writeln!(self.out, "the first {TABLE_ROWS_MAX} rows; another --format gives all")?;
        }
        Ok(self.out.flush()?)
    }
}

//! A table for people.

use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use comfy_table::presets;
use comfy_table::{Cell, CellAlignment, ContentArrangement};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::report::ReportError;
use crate::report::output::cell::{self, printable};
use crate::report::sql::sink::{Flow, Sink};

use super::{Format, Medium, unprintable};

/// A table is built in memory as a whole, and nobody reads more rows.
const TABLE_ROWS_MAX: usize = 10_000;
/// Maximum characters of a cell on a terminal.
const CELL_WIDTH_MAX: usize = 80;
/// Minimum characters of a cut cell: if columns would become narrower, some are left out.
const CELL_WIDTH_MIN: usize = 8;
/// A column's border, and the space around its cells.
const BORDER_WIDTH: usize = 3;

pub(super) struct Table<'a> {
    out: &'a mut (dyn Write + Send),
    medium: Medium,
    names: Vec<String>,
    is_number: Vec<bool>,
    rows: Vec<Vec<String>>,
    is_cut: bool,
}

impl<'a> Table<'a> {
    pub fn new(out: &'a mut (dyn Write + Send), medium: Medium) -> Self {
        Self { out, medium, names: Vec::new(), is_number: Vec::new(), rows: Vec::new(), is_cut: false }
    }

    /// The shown columns in order, with their maximum widths; `None` for each one left out.
    fn fit(&self) -> Vec<Option<(usize, usize)>> {
        let width_of = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].width());
            cells.chain([self.names[column].width()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.names.len()).map(width_of).collect();
        let Some(screen) = self.medium.terminal_width.map(usize::from) else {
            return widths.into_iter().enumerate().map(Some).collect();
        };
        let mut shown: Vec<Option<usize>> = (0..widths.len()).map(Some).collect();
        let total = |shown: &[Option<usize>], cap: usize| {
            let cells = shown.iter().map(|column| column.map_or(1, |column| widths[column].min(cap)));
            cells.sum::<usize>() + BORDER_WIDTH * shown.len() + 1
        };
        // The first columns identify a row and the last ones sum it up, so the middle ones are left out.
        while total(&shown, CELL_WIDTH_MIN) > screen && shown.iter().flatten().count() > 1 {
            let middle = shown.iter().position(Option::is_none).unwrap_or(shown.len().div_ceil(2));
            let (before, after) = (middle, shown[middle..].iter().flatten().count());
            shown.retain(Option::is_some);
            shown.remove(if before > after { before - 1 } else { before });
            let at = if before > after { before - 1 } else { before };
            shown.insert(at, None);
        }
        let cap = (CELL_WIDTH_MIN..=CELL_WIDTH_MAX).rev().find(|cap| total(&shown, *cap) <= screen);
        let cap = cap.unwrap_or(CELL_WIDTH_MIN);
        shown.into_iter().map(|column| column.map(|column| (column, cap))).collect()
    }
}

/// Cuts text to `width`; a cut text ends with an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

impl Sink for Table<'_> {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        self.names = schema.fields().iter().map(|field| printable(field.name())).collect();
        self.is_number = schema.fields().iter().map(|field| cell::is_number(field.data_type())).collect();
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        for row in 0..batch.num_rows() {
            if self.rows.len() == TABLE_ROWS_MAX {
                self.is_cut = true;
                return Ok(Flow::Enough);
            }
            let mut cells = Vec::with_capacity(batch.num_columns());
            for column in batch.columns() {
                let text = cell::text(column, row).map_err(unprintable(Format::Table))?.unwrap_or_default();
                let text = printable(&text);
                // Cut cells early, to save memory.
                cells.push(if self.medium.terminal_width.is_some() { cut(&text, CELL_WIDTH_MAX) } else { text });
            }
            self.rows.push(cells);
        }
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        let shown = self.fit();
        let mut table = comfy_table::Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
        let line = |cells: &[String]| {
            let cell = |column: &Option<(usize, usize)>| match column {
                Some((column, width)) => Cell::new(cut(&cells[*column], *width)).set_alignment(self.alignment(*column)),
                None => Cell::new("…"),
            };
            shown.iter().map(cell).collect::<Vec<_>>()
        };
        table.set_header(shown.iter().map(|column| match column {
            Some((column, width)) => cut(&self.names[*column], *width),
            None => "…".to_owned(),
        }));
        for row in &self.rows {
            table.add_row(line(row));
        }
        writeln!(self.out, "{table}")?;
        let left_out = self.names.len() - shown.iter().flatten().count();
        if left_out > 0 {
            writeln!(self.out, "{left_out} columns do not fit: select fewer columns, or use another --format")?;
        }
        if self.is_cut {
            writeln!(self.out, "only the first {TABLE_ROWS_MAX} rows: use another --format for all rows")?;
        }
        Ok(self.out.flush()?)
    }
}

impl Table<'_> {
    fn alignment(&self, column: usize) -> CellAlignment {
        if self.is_number[column] { CellAlignment::Right } else { CellAlignment::Left }
    }
}

//! Output formats: one sink for each format.

use std::borrow::Cow;
use std::io::Write;
use std::str::FromStr;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use strum::IntoStaticStr;

use super::cell::{self, printable};
use super::page::HtmlTable;
use crate::report::ReportError;
use crate::report::sql::sink::{Flow, Sink, unique_names};

mod columnar;
mod table;

pub use columnar::Columnar;
use table::Table;

/// The output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Format {
    Table,
    Csv,
    Json,
    Ndjson,
    Parquet,
    Markdown,
    Html,
}

impl Format {
    pub const ALL: [Format; 7] =
        [Format::Table, Format::Csv, Format::Json, Format::Ndjson, Format::Parquet, Format::Markdown, Format::Html];

    pub const fn as_str(self) -> &'static str {
        self.into_str()
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Format::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| {
            format!("unknown format {text:?}: expected table, csv, json, ndjson, parquet, markdown or html")
        })
    }
}

/// The medium of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Medium {
    /// The terminal's width in characters if the output is a terminal: tables fit it, and wide cells are cut.
    pub terminal_width: Option<u16>,
}

/// A sink that writes `format` to `out`.
pub fn sink_for<'a>(format: Format, out: &'a mut (dyn Write + Send), medium: Medium) -> Box<dyn Sink + 'a> {
    match format {
        Format::Table => Box::new(Table::new(out, medium)),
        Format::Csv => Box::new(Lines::new(out, &Csv)),
        Format::Json => Box::new(Lines::new(out, &Json { lines: false })),
        Format::Ndjson => Box::new(Lines::new(out, &Json { lines: true })),
        Format::Markdown => Box::new(Lines::new(out, &Markdown)),
        Format::Parquet => Box::new(Columnar::new(out)),
        Format::Html => Box::new(HtmlTable::new(out)),
    }
}

fn unprintable(format: Format) -> impl Fn(ArrowError) -> ReportError {
    move |error| ReportError::Format { format: format.as_str(), detail: error.to_string() }
}

/// A format that is written row by row.
trait Style {
    fn format(&self) -> Format;
    fn head(&self, schema: &SchemaRef) -> String;
    /// Appends the rows of a batch. `nth` is the number of rows already written.
    fn rows(&self, out: &mut String, batch: &RecordBatch, names: &[String], nth: u64) -> Result<(), ArrowError>;
    fn tail(&self, rows: u64) -> &'static str;
}

/// Number of rows that are converted to text before a write.
const ROWS_AT_ONCE: usize = 128;

struct Lines<'a> {
    out: &'a mut (dyn Write + Send),
    schema: Option<Vec<String>>,
    rows: u64,
    style: &'a (dyn Style + Sync),
    /// Rows that are not written yet.
    lines: String,
}

impl<'a> Lines<'a> {
    fn new(out: &'a mut (dyn Write + Send), style: &'a (dyn Style + Sync)) -> Self {
        Self { out, schema: None, rows: 0, style, lines: String::new() }
    }
}

impl Sink for Lines<'_> {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        self.out.write_all(self.style.head(&schema).as_bytes())?;
        self.schema = Some(unique_names(&schema));
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        let names = self.schema.as_deref().expect("BUG: begun before rows come");
        for from in (0..batch.num_rows()).step_by(ROWS_AT_ONCE) {
            let rows = batch.slice(from, ROWS_AT_ONCE.min(batch.num_rows() - from));
            self.lines.clear();
            let written = self.style.rows(&mut self.lines, &rows, names, self.rows);
            written.map_err(unprintable(self.style.format()))?;
            self.out.write_all(self.lines.as_bytes())?;
            self.rows += rows.num_rows() as u64;
        }
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<(), ReportError> {
        self.out.write_all(self.style.tail(self.rows).as_bytes())?;
        Ok(self.out.flush()?)
    }
}

struct Csv;

impl Style for Csv {
    fn format(&self) -> Format {
        Format::Csv
    }

    fn head(&self, schema: &SchemaRef) -> String {
        let names = schema.fields().iter().map(|field| csv_field(field.name(), false));
        format!("{}\n", names.collect::<Vec<_>>().join(","))
    }

    fn rows(&self, out: &mut String, batch: &RecordBatch, _: &[String], _: u64) -> Result<(), ArrowError> {
        let column = |column| Ok((cell::Texts::of(column)?, cell::is_number(column.data_type())));
        let columns = batch.columns().iter().map(|held| column(held)).collect::<Result<Vec<_>, ArrowError>>()?;
        let mut held = String::new();
        for row in 0..batch.num_rows() {
            for (at, (texts, is_number)) in columns.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                match texts.get(row, &mut held)? {
                    Some(text) if is_plain_csv(text) => out.push_str(text),
                    Some(text) => out.push_str(&csv_field(text, *is_number)),
                    None => {}
                }
            }
            out.push('\n');
        }
        Ok(())
    }

    fn tail(&self, _: u64) -> &'static str {
        ""
    }
}

/// First characters of a cell that spreadsheets take for a formula, including the wide forms of East Asian keyboards.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Whether a field can be written as it is: ASCII that needs neither quotes nor a guard.
fn is_plain_csv(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    !matches!(first, b' ' | b'#' | b'=' | b'+' | b'-' | b'@')
        && *last != b' '
        && bytes.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b';' | b'"'))
}

/// Quotes a field if necessary, and always an empty text, which distinguishes it from NULL. An apostrophe turns a formula into
/// text, also behind a semicolon, where many spreadsheets begin a cell in spite of quotes. A number remains a number.
fn csv_field(text: &str, is_number: bool) -> String {
    let is_plain = || is_number || text.parse::<f64>().is_ok_and(f64::is_finite);
    let guard = if text.starts_with(FORMULA_STARTS) && !is_plain() { "'" } else { "" };
    let text = &guarded(&visible(text), &[';']);
    // A reader can take a line that begins with an unquoted # for a comment.
    if text.is_empty() || text.starts_with('#') || text.contains([',', '"', '\n', '\r']) || text.trim() != text {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{guard}{text}")
    }
}

/// A line of the statement under the rows. A spreadsheet splits it into cells at commas and semicolons, so the apostrophe of
/// [`csv_field`] stands before each formula.
pub fn csv_comment(text: &str) -> String {
    format!("# {}", guarded(&printable(text), &[',', ';']))
}

/// A text with an apostrophe before each formula that follows a separator.
fn guarded(text: &str, separators: &[char]) -> String {
    let (mut guarded, mut is_start) = (String::with_capacity(text.len()), false);
    for c in text.chars() {
        if is_start && FORMULA_STARTS.contains(&c) {
            guarded.push('\'');
        }
        is_start = separators.contains(&c) || is_start && matches!(c, ' ' | '"');
        guarded.push(c);
    }
    guarded
}

/// Replaces control characters by their pictures, so that the file cannot control a terminal. Line ends and tabs are data and
/// remain.
fn visible(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match c {
        c if !steers(c) => c,
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        _ => '\u{fffd}',
    };
    Cow::Owned(text.chars().map(shown).collect())
}

struct Json {
    /// One object on each line, instead of one list.
    lines: bool,
}

impl Style for Json {
    fn format(&self) -> Format {
        if self.lines { Format::Ndjson } else { Format::Json }
    }

    fn head(&self, _: &SchemaRef) -> String {
        if self.lines { String::new() } else { "[".into() }
    }

    fn rows(&self, out: &mut String, batch: &RecordBatch, names: &[String], nth: u64) -> Result<(), ArrowError> {
        for row in 0..batch.num_rows() {
            out.push_str(match (self.lines, nth + row as u64) {
                (true, _) => "",
                (false, 0) => "\n",
                (false, _) => ",\n",
            });
            cell::push_row(out, batch, names, row)?;
            out.push_str(if self.lines { "\n" } else { "" });
        }
        Ok(())
    }

    fn tail(&self, rows: u64) -> &'static str {
        match (self.lines, rows) {
            (true, _) => "",
            (false, 0) => "]\n",
            (false, _) => "\n]\n",
        }
    }
}

struct Markdown;

impl Style for Markdown {
    fn format(&self) -> Format {
        Format::Markdown
    }

    fn head(&self, schema: &SchemaRef) -> String {
        let names = schema.fields().iter().map(|field| markdown_cell(field.name())).collect::<Vec<_>>().join(" | ");
        let rules = schema.fields().iter().map(|field| if cell::is_number(field.data_type()) { "---:" } else { "---" });
        format!("| {names} |\n| {} |\n", rules.collect::<Vec<_>>().join(" | "))
    }

    fn rows(&self, out: &mut String, batch: &RecordBatch, _: &[String], _: u64) -> Result<(), ArrowError> {
        for row in 0..batch.num_rows() {
            let cells =
                batch.columns().iter().map(|column| Ok(markdown_cell(&cell::text(column, row)?.unwrap_or_default())));
            out.push_str(&format!("| {} |\n", cells.collect::<Result<Vec<_>, ArrowError>>()?.join(" | ")));
        }
        Ok(())
    }

    fn tail(&self, _: u64) -> &'static str {
        ""
    }
}

pub fn markdown_cell(text: &str) -> String {
    let mut cell = String::new();
    for c in printable(text).chars() {
        match c {
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' => cell.extend(['\\', c]),
            '<' => cell.push_str("&lt;"),
            '&' => cell.push_str("&amp;"),
            c => cell.push(c),
        }
    }
    cell
}

#[cfg(test)]
mod tests;

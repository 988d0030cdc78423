//! Writes a report in a format: its rows and its statement.

use std::io::Write;

use super::cell::printable;
use super::page::{FirstRows, Section, report_page};
use super::render::{Columnar, Format, Medium, csv_comment, markdown_cell, sink_for};
use crate::report::{ReportError, Run};

/// Maximum number of rows on a page: more would make it slow, and nobody reads them there.
pub const PAGE_ROWS_MAX: usize = 1_000;

/// Writes the rows of `run` as `format`, and its statement if the format has a place for it. `bare` leaves the statement
/// out.
///
/// # Errors
/// As [`Run::rows`].
pub fn write_report(
    run: &Run<'_>,
    format: Format,
    out: &mut (dyn Write + Send),
    medium: Medium,
    is_bare: bool,
) -> Result<(), ReportError> {
    let about = run.about();
    let json = serde_json::to_string(about).expect("BUG: a statement is plain data");
    if is_bare && format != Format::Parquet {
        return write_rows(run, format, out, medium);
    }
    match format {
        Format::Html => {
            let mut rows = FirstRows::new(PAGE_ROWS_MAX);
            run.named_rows(&mut rows)?;
            let section = Section::of(run, rows, Vec::new())?;
            out.write_all(report_page(run, &section)?.as_bytes())?;
        }
        Format::Json => {
            write!(out, "{{\"about\":{json},\n\"rows\":")?;
            run.rows(sink_for(format, out, medium).as_mut())?;
            out.write_all(b"}\n")?;
        }
        Format::Parquet => run.rows(&mut Columnar::new(out).with_metadata("annals.about", json))?,
        Format::Ndjson => {
            run.rows(sink_for(format, out, medium).as_mut())?;
            writeln!(out, "{{\"about\":{json}}}")?;
        }
        Format::Table | Format::Csv | Format::Markdown => {
            write_rows(run, format, out, medium)?;
            if format == Format::Markdown {
                writeln!(out)?;
            }
            for line in about.lines() {
                match format {
                    Format::Csv => writeln!(out, "{}", csv_comment(&line))?,
                    Format::Markdown => writeln!(out, "- {}", markdown_cell(&line))?,
                    _ => writeln!(out, "{}", printable(&line))?,
                }
            }
        }
    }
    Ok(out.flush()?)
}

/// Writes the rows: for people with team names, for programs unchanged.
fn write_rows(run: &Run<'_>, format: Format, out: &mut (dyn Write + Send), medium: Medium) -> Result<(), ReportError> {
    let mut sink = sink_for(format, out, medium);
    match format {
        Format::Table | Format::Html => run.named_rows(sink.as_mut()),
        _ => run.rows(sink.as_mut()),
    }
}

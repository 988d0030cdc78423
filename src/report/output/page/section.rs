//! One report on a page: its statement, its chart, its first rows, its SQL.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde_json::Value;

use crate::model::duration_text;
use crate::report::output::chart::{CHART_ROWS_MAX, Drawing, NOTHING_DRAWN, Rows, counted, draw};
use crate::report::sql::sink::{Flow, Sink};
use crate::report::{About, ParamKind, Report, ReportError, Run, Severity, gaps_recorded, printable};

use super::cells::{Cell, ColumnHead, FirstRows};
use super::period;

/// A drawing with its title and the text below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    pub title: String,
    pub drawing: Drawing,
    pub text: String,
}

impl Figure {
    /// Whether the chart has no data; the drawing itself says so.
    pub fn is_empty(&self) -> bool {
        self.drawing.summary == NOTHING_DRAWN
    }
}

/// One report, as a page shows it.
#[derive(Debug)]
pub struct Section {
    /// Unique on the page.
    pub anchor: String,
    pub id: String,
    pub title: String,
    pub question: String,
    pub controls: Vec<String>,
    pub notes: Vec<String>,
    pub params: Vec<(String, String)>,
    pub period: String,
    /// The coverage of the period in one line.
    pub coverage: String,
    pub total: String,
    pub detections: Option<String>,
    /// The number of detections by severity, highest first; empty if the report detects nothing.
    pub found: Vec<String>,
    pub figure: Option<Figure>,
    pub columns: Vec<ColumnHead>,
    pub rows: Vec<Vec<Cell>>,
    pub shown: String,
    count: u64,
    /// Names and addresses of files with all rows.
    pub links: Vec<(String, String)>,
    pub sha256: String,
    pub sql: String,
}

impl Section {
    /// The section of a finished report. `rows` are its first rows; `links` name files with all rows.
    ///
    /// # Errors
    /// As [`Run::chart_rows`]; [`ReportError::Report`] when the chart does not fit its rows.
    pub fn of(run: &Run<'_>, rows: FirstRows, links: Vec<(String, String)>) -> Result<Self, ReportError> {
        let (about, report) = (run.about(), run.report());
        let anchor = format!("report-{}", report.id.to_lowercase());
        let clean = |texts: &[String]| texts.iter().map(|text| printable(text)).collect();
        Ok(Self {
            figure: figure(run, report)?,
            id: report.id.clone(),
            title: printable(&report.title),
            question: printable(&report.question),
            controls: clean(&report.controls),
            notes: about
                .without_text
                .iter()
                .chain(&about.sessions_behind)
                .chain(&about.roster)
                .chain(&report.notes)
                .map(|text| printable(text))
                .collect(),
            params: about.params.iter().map(|(name, value)| (name.clone(), threshold(report, name, value))).collect(),
            period: period(about, run.zone()),
            coverage: covered(about),
            total: counted(about.rows),
            detections: about.detections.as_ref().map(|found| {
                let parts: Vec<String> =
                    found.iter().rev().map(|(severity, rows)| format!("{} {severity}", counted(*rows))).collect();
                if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
            }),
            found: found(about),
            shown: rows_shown(rows.rows.len() as u64, rows.total, &links),
            count: rows.total,
            columns: rows.columns,
            rows: rows.rows,
            links,
            sha256: about.query_sha256.to_string(),
            sql: report.text.lines().map(sql_line).collect::<Vec<_>>().join("\n"),
            anchor,
        })
    }

    /// For a page with many sections: fewer rows, and links relative to that page.
    pub fn shorten(&mut self, rows_max: usize, links: Vec<(String, String)>) {
        self.rows.truncate(rows_max);
        self.shown = rows_shown(self.rows.len() as u64, self.count, &links);
        self.links = links;
    }
}

/// Keeps indentation, and removes marks that change the text direction.
fn sql_line(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    format!("{}{}", " ".repeat(indent), printable(line.trim_start()))
}

/// A parameter's value as a person would type it: `30m`, `a, b`; `none` for NULL.
fn threshold(report: &Report, name: &str, value: &Value) -> String {
    let kind = report.params.iter().find(|param| param.name == name).map(|param| param.kind);
    let text = match (kind, value) {
        (_, Value::Null) => "none".to_owned(),
        (Some(ParamKind::Duration), Value::Number(seconds)) => {
            seconds.as_u64().map_or_else(|| value.to_string(), |seconds| duration_text(Duration::from_secs(seconds)))
        }
        (_, Value::Array(items)) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        _ => plain(value),
    };
    if text.is_empty() { "none".to_owned() } else { printable(&text) }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn found(about: &About) -> Vec<String> {
    let of = |severity: Severity| match &about.detections {
        None => String::new(),
        Some(found) => counted(found.get(&severity).copied().unwrap_or(0)),
    };
    Severity::ALL.into_iter().rev().map(of).collect()
}

fn covered(about: &About) -> String {
    let gaps = about.gaps();
    let open = about.coverage.iter().filter(|line| line.stream.is_some() && !line.complete).count();
    match (gaps, open) {
        (0, 0) if about.coverage.is_empty() => "nothing was read yet".to_owned(),
        (0, 0) => "complete, no gap is recorded".to_owned(),
        (0, open) => format!("no gap is recorded; {open} of {} streams are not complete", about.coverage.len()),
        (gaps, _) => gaps_recorded(gaps as u64),
    }
}

fn rows_shown(shown: u64, total: u64, links: &[(String, String)]) -> String {
    if shown == total {
        return if total == 1 { "The one row.".to_owned() } else { format!("All {} rows.", counted(total)) };
    }
    let place = links.first().map_or_else(|| "in other formats".to_owned(), |(name, _)| format!("in the {name} file"));
    format!("The first {} of {} rows; {} more are {place}.", counted(shown), counted(total), counted(total - shown))
}

fn figure(run: &Run<'_>, report: &Report) -> Result<Option<Figure>, ReportError> {
    let Some(chart) = &report.chart else { return Ok(None) };
    let mut sink = ChartRows::default();
    run.chart_rows(&mut sink)?;
    sink.rows.name_teams(&run.about().names);
    sink.rows.join_columns(chart);
    let drawing = draw(chart, &sink.rows, sink.unseen).map_err(|message| {
        let line = report.chart_rows.as_ref().unwrap_or(&report.rows).line;
        ReportError::Report { path: report.path().to_owned(), line, message }
    })?;
    Ok(Some(Figure { title: printable(&chart.title), text: text_below(&drawing), drawing }))
}

pub(super) fn text_below(drawing: &Drawing) -> String {
    let sentences = std::iter::once(&drawing.summary).chain(&drawing.notes);
    sentences.map(|text| format!("{}.", capital(text))).collect::<Vec<_>>().join(" ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Keeps the rows for a chart, and counts the rest.
#[derive(Default)]
struct ChartRows {
    rows: Rows,
    unseen: u64,
}

impl Sink for ChartRows {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        self.rows = Rows::new(schema.fields().iter().map(|field| field.name().clone()));
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<Flow, ReportError> {
        let wanted = CHART_ROWS_MAX.saturating_sub(self.rows.len()).min(batch.num_rows());
        let failed = |e: arrow::error::ArrowError| ReportError::Format { format: "html", detail: e.to_string() };
        self.rows.extend(&batch.slice(0, wanted)).map_err(failed)?;
        self.unseen += (batch.num_rows() - wanted) as u64;
        Ok(Flow::More)
    }
}

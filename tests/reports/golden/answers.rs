//! Runs a report on the golden archive, and writes its rows and its chart's rows as text.

use annals::model::{Instant, Range, TeamId};
use annals::report::{
    Engine, Flow, Format, Limits, Medium, ParamDefault, Report, ReportError, ReportInput, Sink, ViewData, sink_for,
};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde_json::Value;

use super::world::at;

const NOW: &str = "2026-11-10T00:00:00Z";

/// The parameters of a run. The text before the first `.` of a golden's name is the report's name.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    pub report: &'static str,
    /// Distinguishes questions to the same report; empty for the usual one.
    pub name: &'static str,
    pub period: (&'static str, &'static str),
    pub team: Option<&'static str>,
    pub zone: &'static str,
    pub params: &'static [(&'static str, &'static str)],
}

impl Question {
    /// The usual question: four weeks of both teams, in Vienna's local time. In these weeks summer time ends in both
    /// zones.
    pub const fn usual(report: &'static str) -> Self {
        Self {
            report,
            name: "",
            period: ("2026-10-12T00:00:00Z", "2026-11-09T00:00:00Z"),
            team: None,
            zone: "Europe/Vienna",
            params: &[],
        }
    }
}

/// The rows, one JSON object a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub rows: String,
    pub chart: String,
    /// The name and the type of each column.
    pub columns: Vec<(String, String)>,
}

impl Answer {
    pub fn objects(&self) -> Vec<Value> {
        self.rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Values of the required parameters.
pub fn required(report: &Report) -> impl Iterator<Item = &str> {
    report.params.iter().filter(|param| param.default == ParamDefault::Required).map(|param| param.name.as_str())
}

pub fn ask(data: &ViewData, report: &Report, question: &Question) -> Answer {
    let mut engine = Engine::open(data.clone(), &Limits { memory_mib: 512, threads: 2, ..Limits::default() })
        .and_then(Engine::confined)
        .unwrap();
    let zone: annals::report::Zone = question.zone.parse().unwrap();
    let now: Instant = at(NOW);
    let mut given: Vec<(String, String)> =
        question.params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let lacking: Vec<_> = required(report).filter(|name| given.iter().all(|(held, _)| held != name)).collect();
    given.extend(lacking.into_iter().map(|name| (name.to_owned(), "nobody".to_owned())));
    let period = Range::new(at(question.period.0), at(question.period.1));
    let asked = ReportInput {
        period,
        team: question.team.map(TeamId::from),
        values: report.values(&given, now, zone.rules()).unwrap(),
        zone,
        as_of: period.end,
        now,
    };
    let run = engine.run(report, &asked).unwrap_or_else(|e| panic!("{}: {e}", report.id));
    let mut rows = Vec::new();
    run.rows(sink_for(Format::Ndjson, &mut rows, Medium::default()).as_mut()).unwrap();
    let mut chart = Vec::new();
    run.chart_rows(sink_for(Format::Ndjson, &mut chart, Medium::default()).as_mut())
        .unwrap_or_else(|e| panic!("{}, its chart: {e}", report.id));
    let mut columns = Columns::default();
    run.rows(&mut columns).unwrap();
    Answer {
        rows: steady(&String::from_utf8(rows).unwrap()),
        chart: steady(&String::from_utf8(chart).unwrap()),
        columns: columns.0,
    }
}

/// Keeps the columns, and no row.
#[derive(Default)]
struct Columns(Vec<(String, String)>);

impl Sink for Columns {
    fn begin(&mut self, schema: SchemaRef) -> Result<(), ReportError> {
        self.0 = schema.fields().iter().map(|f| (f.name().clone(), format!("{:?}", f.data_type()))).collect();
        Ok(())
    }

    fn batch(&mut self, _: &RecordBatch) -> Result<Flow, ReportError> {
        Ok(Flow::Enough)
    }
}

/// Replaces values that depend on the files' encoding: digests, and sizes in bytes.
fn steady(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(['"', ',', '}']) {
        let word = part.trim_end_matches(['"', ',', '}']);
        let is_digest = word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (is_digest, word.strip_prefix(':')) {
            (true, _) => out.push_str(&part.replace(word, "<sha256>")),
            (false, Some(number)) if out.ends_with("\"bytes\"") && number.parse::<u64>().is_ok() => {
                out.push_str(&part.replace(number, "0"));
            }
            _ => out.push_str(part),
        }
    }
    out
}

//! Runs a report: binds parameters, keeps the rows as relation `report`, and makes the statement.

use std::collections::BTreeMap;

use duckdb::types::Value;
use duckdb::{Connection, Statement as Prepared};

use crate::model::{Instant, Range, TeamId};

use super::catalog::{IMPLICIT_PARAMS, ParamValue, Report, Severity, SeverityRule};
use super::{Engine, ReportError, Sink};
use crate::report::output::pseudonyms::Pseudonymised;
use crate::report::output::team_name_sink::TeamNameSink;
use crate::report::sql::engine::stream_rows;
use crate::report::sql::lexer::Statement;
use crate::report::sql::zone::Zone;
use crate::report::statement::about::{About, LedgerHead};
use crate::report::statement::coverage::{Span, coverage};
use crate::report::statement::roster_reads::roster_reads;
use crate::report::statement::sessions_behind::sessions_behind;
use crate::report::statement::without_text::without_text;
use crate::report::views::data::{TeamSnapshot, ViewData};
use crate::report::views::needs::Needs;

/// The arguments of a report.
#[derive(Debug, Clone)]
pub struct ReportInput {
    /// Half-open.
    pub period: Range,
    /// `None` for all teams.
    pub team: Option<TeamId>,
    pub zone: Zone,
    /// The time of the shown people and computers.
    pub as_of: Instant,
    /// The current time.
    pub now: Instant,
    /// From [`Report::values`].
    pub values: BTreeMap<String, ParamValue>,
}

impl ReportInput {
    fn value(&self, name: &str) -> Option<Value> {
        let value = match name {
            "from" => ParamValue::At(self.period.start),
            "to" => ParamValue::At(self.period.end),
            "team" => self.team.as_ref().map_or(ParamValue::Null, |team| ParamValue::Text(team.to_string())),
            "tz" => ParamValue::Text(self.zone.name().to_owned()),
            "now" => ParamValue::At(self.now),
            "as_of" => ParamValue::At(self.as_of),
            own => self.values.get(own)?.clone(),
        };
        Some(value.bound())
    }
}

/// A finished report. Its rows remain in the engine, spilled to disk if there are many, until it is dropped.
pub struct Run<'e> {
    engine: &'e mut Engine,
    report: &'e Report,
    asked: &'e ReportInput,
    about: About,
}

impl Engine {
    /// Runs a report.
    ///
    /// # Errors
    /// [`ReportError::Report`] with file and line when its SQL is wrong; else as [`Engine::query`].
    pub fn run<'e>(&'e mut self, report: &'e Report, asked: &'e ReportInput) -> Result<Run<'e>, ReportError> {
        self.check(report)?;
        self.make_table("report", report, &report.rows, asked)?;
        let count = |sql: &str| self.connection().query_row(sql, [], |row| row.get::<_, u64>(0));
        let rows = count("SELECT count(*) FROM report").map_err(|e| self.failed(&e))?;
        let detections = match report.severity {
            None => None,
            Some(SeverityRule::Every(severity)) => {
                Some(if rows > 0 { BTreeMap::from([(severity, rows)]) } else { BTreeMap::new() })
            }
            Some(SeverityRule::Column) => Some(detections(self.connection(), report)?),
        };
        let about = self.about(report, asked, rows, detections);
        Ok(Run { engine: self, report, asked, about })
    }

    /// Runs one of the report's queries, and keeps its rows in a table.
    fn make_table(
        &self,
        table: &str,
        report: &Report,
        query: &Statement,
        asked: &ReportInput,
    ) -> Result<(), ReportError> {
        let making = format!("CREATE OR REPLACE TEMP TABLE {table} AS\n{}\n", query.sql);
        let wrong = |e: duckdb::Error| in_report(report, query, self.failed(&e));
        let mut statement = self.connection().prepare(&making).map_err(wrong)?;
        bind(&mut statement, report, query, asked)?;
        statement.raw_execute().map(drop).map_err(wrong)
    }

    /// Allows only queries: everything else is refused before the engine runs it.
    ///
    /// # Errors
    /// [`ReportError::Report`] with file and line.
    pub fn check(&self, report: &Report) -> Result<(), ReportError> {
        for statement in std::iter::once(&report.rows).chain(&report.chart_rows) {
            check_statement(self.connection(), report, statement)?;
        }
        Ok(())
    }

    fn about(
        &self,
        report: &Report,
        asked: &ReportInput,
        rows: u64,
        detections: Option<BTreeMap<Severity, u64>>,
    ) -> About {
        let data = self.data();
        let is_asked = |team: &TeamId| asked.team.as_ref().is_none_or(|asked| asked == team);
        let heads = data.teams.iter().filter(|head| is_asked(&head.team_id));
        let named = |head: &&TeamSnapshot| {
            let team = head.team_id.to_string();
            data.names.name(&team).map(str::to_owned).map(|name| (team, name))
        };
        let about = About {
            report: report.id.clone(),
            name: report.name.clone(),
            title: report.title.clone(),
            question: report.question.clone(),
            period: Span { from: asked.period.start, to: asked.period.end },
            zone: asked.zone.name().to_owned(),
            team: asked.team.as_ref().map(ToString::to_string),
            team_names: heads.clone().filter_map(|head| named(&head)).collect(),
            names: data.names.clone(),
            as_of: asked.as_of,
            params: asked.values.iter().map(|(name, value)| (name.clone(), value.to_json())).collect(),
            rows,
            detections,
            coverage: coverage(data, asked.period, asked.team.as_ref()),
            roster: roster_reads(data, report, asked.as_of, asked.team.as_ref()),
            without_text: without_text(data, report, asked.period, asked.team.as_ref()),
            sessions_behind: sessions_behind(data, &Needs::of_report(report), asked.team.as_ref()),
            ledger: heads
                .map(|head| LedgerHead { team: head.team_id.to_string(), seq: head.seq.0, sha256: head.head })
                .collect(),
            query_sha256: report.sha256,
            controls: report.controls.clone(),
            notes: report.notes.clone(),
            annals_version: env!("CARGO_PKG_VERSION").to_owned(),
            made_at: asked.now,
        };
        match &self.pseudonyms {
            Some(names) => names.about(about, report),
            None => about,
        }
    }
}

impl Run<'_> {
    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn report(&self) -> &Report {
        self.report
    }

    /// The engine's snapshot.
    pub(super) fn data(&self) -> &ViewData {
        self.engine.data()
    }

    /// The time zone in the arguments.
    pub(super) fn zone(&self) -> &Zone {
        &self.asked.zone
    }

    /// The rows, in the report's order.
    pub fn rows(&self, sink: &mut dyn Sink) -> Result<(), ReportError> {
        self.rows_of("report", sink)
    }

    fn rows_of(&self, table: &str, sink: &mut dyn Sink) -> Result<(), ReportError> {
        let failed = |e: &duckdb::Error| self.engine.failed(e);
        let sql = format!("SELECT * FROM {table}");
        let mut statement = self.engine.connection().prepare(&sql).map_err(|e| failed(&e))?;
        match &self.engine.pseudonyms {
            Some(names) => stream_rows(&mut statement, &[], &mut Pseudonymised::new(sink, names), failed),
            None => stream_rows(&mut statement, &[], sink, failed),
        }
    }

    /// The rows for people, with team names.
    pub fn named_rows(&self, sink: &mut dyn Sink) -> Result<(), ReportError> {
        self.rows(&mut TeamNameSink::new(sink, &self.about.names))
    }

    /// The rows of the chart: from the report's second query, else the report's own rows.
    ///
    /// # Errors
    /// [`ReportError::Report`] when that query is wrong; else as [`Run::rows`].
    pub fn chart_rows(&self, sink: &mut dyn Sink) -> Result<(), ReportError> {
        let Some(query) = &self.report.chart_rows else { return self.rows(sink) };
        self.engine.make_table("report_chart", self.report, query, self.asked)?;
        self.rows_of("report_chart", sink)
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // If this fails, the next run replaces the tables, or they go with the engine.
        let _ =
            self.engine.connection().execute_batch("DROP TABLE IF EXISTS report_chart; DROP TABLE IF EXISTS report");
    }
}

/// Binds values by name; values never become SQL.
fn bind(
    statement: &mut Prepared<'_>,
    report: &Report,
    query: &Statement,
    asked: &ReportInput,
) -> Result<(), ReportError> {
    let wrong = |message: String| ReportError::Report { path: report.path().to_owned(), line: query.line, message };
    for at in 1..=statement.parameter_count() {
        let name = statement.parameter_name(at).map_err(|e| wrong(e.to_string()))?;
        let value = asked.value(&name).ok_or_else(|| {
            let own = report.params.iter().map(|param| param.name.as_str());
            let known = IMPLICIT_PARAMS.into_iter().chain(own).collect::<Vec<_>>().join(", ");
            wrong(format!("the query uses ${name}, which the header does not declare: it can use {known}"))
        })?;
        statement.raw_bind_parameter(at, value).map_err(|e| wrong(format!("cannot bind ${name}: {e}")))?;
    }
    Ok(())
}

fn detections(connection: &Connection, report: &Report) -> Result<BTreeMap<Severity, u64>, ReportError> {
    let wrong =
        |message: String| ReportError::Report { path: report.path().to_owned(), line: report.rows.line, message };
    let sql = "SELECT severity::VARCHAR, count(*) FROM report WHERE severity IS NOT NULL GROUP BY ALL ORDER BY ALL";
    let no_column = |_| wrong("the header says `severity: column`, but the query has no column severity".to_owned());
    let mut statement = connection.prepare(sql).map_err(no_column)?;
    let counted = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?)));
    let mut found = BTreeMap::new();
    for row in counted.map_err(|e| wrong(e.to_string()))? {
        let (severity, rows) = row.map_err(|e| wrong(e.to_string()))?;
        let severity: Severity = severity.parse().map_err(|e| wrong(format!("column severity: {e}")))?;
        found.insert(severity, rows);
    }
    Ok(found)
}

fn check_statement(connection: &Connection, report: &Report, statement: &Statement) -> Result<(), ReportError> {
    let checked = serialized(connection, &statement.sql).map(drop);
    checked.map_err(|(position, message)| {
        let before = statement.sql.get(..position.unwrap_or(0)).unwrap_or_default();
        let line = statement.line + before.matches('\n').count();
        ReportError::Report { path: report.path().to_owned(), line, message }
    })
}

/// The query in the engine's serialized form. If `sql` is not one query: the message, and the byte position if the engine gives it.
pub(super) fn serialized(connection: &Connection, sql: &str) -> Result<serde_json::Value, (Option<usize>, String)> {
    let text = connection.query_row("SELECT json_serialize_sql(?::VARCHAR)", [sql], |row| row.get::<_, String>(0));
    let text = text.map_err(|e| (None, e.to_string()))?;
    let query: serde_json::Value = serde_json::from_str(&text).map_err(|e| (None, e.to_string()))?;
    let text = |member: &str| query[member].as_str().unwrap_or_default().to_owned();
    match (query["error"].as_bool(), text("error_type").as_str()) {
        (Some(false), _) if query["statements"].as_array().is_some_and(|found| found.len() == 1) => Ok(query),
        (_, "not implemented") => Err((None, "a report can contain only SELECT statements".to_owned())),
        (Some(true), _) => Err((text("position").parse::<usize>().ok(), text("error_message"))),
        _ => Err((None, "not one SELECT".to_owned())),
    }
}

/// The engine's error, with the line in the report's file. One line comes before the query.
fn in_report(report: &Report, query: &Statement, error: ReportError) -> ReportError {
    match error {
        ReportError::Query { message, line } => {
            let inside = line.map_or(0, |line| line.saturating_sub(2));
            ReportError::Report { path: report.path().to_owned(), line: query.line + inside, message }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;

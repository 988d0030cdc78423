//! The list of reports, and one report with its chart, its parameters and its first rows.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;

use crate::model::Instant;
use crate::report::{About, Format, Param, ParamDefault, ParamKind, Report, Section, Zone, printable};

use super::super::AppState;
use super::super::answer::period;
use super::super::answer::reports::{Question, REPORT_TIME_MAX, catalog, check_parameters};
use super::super::format::time;
use super::super::input::{Input, link};
use super::super::problem::Problem;
use super::page_request::{Frame, PageRequest, zone_of};
use super::{Page, shown_as, shown_page};

/// Number of rows on a page: the files hold all rows.
const ROWS: usize = 200;
/// Maximum number of listed gaps.
const GAPS_SHOWN: usize = 5;
/// Download formats of a report.
const FORMATS: [(&str, Format, &str); 5] = [
    ("CSV", Format::Csv, "text/csv; charset=utf-8"),
    ("HTML", Format::Html, "text/html; charset=utf-8"),
    ("JSON", Format::Json, "application/json"),
    ("NDJSON", Format::Ndjson, "application/x-ndjson"),
    ("Parquet", Format::Parquet, "application/vnd.apache.parquet"),
];

struct ListedReport {
    id: String,
    title: String,
    question: String,
    controls: String,
    severity: &'static str,
    href: String,
}

#[derive(Template)]
#[template(path = "web/reports.html")]
struct Reports {
    frame: Frame,
    reports: Vec<ListedReport>,
    faults: Vec<String>,
}

pub async fn reports(State(state): State<Arc<AppState>>, request: PageRequest) -> Page {
    request.input.only(&["team"])?;
    let catalog = catalog(&state).await?;
    let listed = catalog.reports().iter().map(|report| ListedReport {
        id: printable(&report.id),
        title: printable(&report.title),
        question: printable(&report.question),
        controls: printable(&report.controls.join("; ")),
        severity: report.severity.map_or("", |rule| rule.as_str()),
        href: link(&format!("/reports/{}", report.name), [("team", request.team_query().as_str())]),
    });
    let document = Reports {
        reports: listed.collect(),
        faults: catalog.faults().iter().map(|fault| printable(&fault.to_string())).collect(),
        frame: request.frame,
    };
    shown_page(&document)
}

/// A parameter as a form field.
struct Field {
    name: String,
    label: String,
    about: String,
    /// The accepted values beyond the type; empty if the type says all.
    taken: String,
    value: String,
    placeholder: String,
    kind: &'static str,
    is_required: bool,
}

#[derive(Template)]
#[template(path = "web/report.html")]
struct ReportPage {
    frame: Frame,
    id: String,
    title: String,
    question: String,
    from: String,
    to: String,
    fields: Vec<Field>,
    problem: Option<String>,
    section: Option<Section>,
    gaps: Vec<String>,
    gaps_left: usize,
    gaps_href: String,
    heads: Vec<(String, u64, String)>,
    /// Why the report does not run before the user presses the button.
    waits: Option<String>,
    seconds: u64,
}

pub async fn report(State(state): State<Arc<AppState>>, Path(name): Path<String>, request: PageRequest) -> Page {
    let report = catalog(&state).await?.find(&name)?.clone();
    let is_asked = request.input.get("run").is_some();
    // A report that reads the whole archive or lacks a parameter waits for the button.
    let waits = if is_asked { None } else { waits(&report, &request.input) };
    let answer = if waits.is_some() { Ok(None) } else { answered(&state, &request, report.clone()).await.map(Some) };
    let (answer, problem, status) = match answer {
        Ok(answer) => (answer, None, StatusCode::OK),
        Err(problem) if problem.status.is_server_error() && problem.code == "failed" => return Err(problem),
        Err(problem) => (None, Some(problem.message), problem.status),
    };
    let (section, about) = answer.unzip();
    let (from, to) = period_shown(&request);
    let document = ReportPage {
        id: printable(&report.id),
        title: printable(&report.title),
        question: printable(&report.question),
        from,
        to,
        fields: fields(&report, &request),
        problem,
        gaps: about.as_ref().map(|about| gaps(about, &request.zone)).unwrap_or_default(),
        gaps_left: about.as_ref().map_or(0, About::gaps).saturating_sub(GAPS_SHOWN),
        gaps_href: link("/findings", [("team", request.team_query().as_str()), ("kind", "gap")]),
        heads: about
            .iter()
            .flat_map(|about| &about.ledger)
            .map(|head| (request.names.label(&head.team), head.seq, head.sha256.to_string()))
            .collect(),
        section,
        waits,
        seconds: REPORT_TIME_MAX.as_secs(),
        frame: request.frame,
    };
    shown_as(status, &document)
}

/// Why a report does not run at once.
fn waits(report: &Report, input: &Input) -> Option<String> {
    let is_lacking = |param: &&Param| {
        param.default == ParamDefault::Required && input.get(&format!("param.{}", param.name)).is_none()
    };
    let lacking: Vec<String> = report.params.iter().filter(is_lacking).map(|param| label(&param.name)).collect();
    match (lacking.is_empty(), report.needs_verify) {
        (false, _) => Some(printable(&format!("It needs a value for: {}.", lacking.join(", ")))),
        (true, true) => Some("It reads the whole archive.".to_owned()),
        (true, false) => None,
    }
}

fn label(name: &str) -> String {
    name.replace('_', " ")
}

async fn answered(state: &AppState, request: &PageRequest, report: Report) -> Result<(Section, About), Problem> {
    // Only the page knows this parameter.
    let input = request.input.with(&[("run", "")]);
    check_parameters(&input)?;
    let links = FORMATS.map(|(label, format, _)| {
        let (zone, team) = (request.zone.name(), request.frame.team.as_str());
        let path = format!("/reports/{}/file", report.name);
        (label.to_owned(), input.link(&path, &[("tz", zone), ("format", format.as_str()), ("team", team)]))
    });
    // The report is about the page's team, even if the address names none.
    let about_team = request.input.with(&[("team", request.frame.team.as_str())]);
    let question = Question::of(state, report, &about_team, request.zone.clone()).await?;
    question.section(state, ROWS, links.into()).await
}

fn period_shown(request: &PageRequest) -> (String, String) {
    match (period(&request.input, request.now, &request.zone), request.given_day("to").is_empty()) {
        // The period ends now: leave the form field empty, so that it remains "now".
        (Ok(range), true) => (request.day(range.start), String::new()),
        (Ok(range), false) => (request.day(range.start), request.day(range.end)),
        (Err(_), _) => (request.given_day("from"), request.given_day("to")),
    }
}

fn fields(report: &Report, request: &PageRequest) -> Vec<Field> {
    let fields = report.params.iter().map(|param| {
        let name = format!("param.{}", param.name);
        let default = match &param.default {
            ParamDefault::Text(text) => text.clone(),
            ParamDefault::Null | ParamDefault::Required => String::new(),
        };
        Field {
            value: request.input.get(&name).map_or_else(|| default.clone(), printable),
            placeholder: match param.kind {
                ParamKind::Duration => "30m",
                ParamKind::List => "a, b, c",
                ParamKind::Date => "2026-11-20",
                ParamKind::Time => "07:00",
                _ => "",
            }
            .to_owned(),
            label: label(&param.name),
            about: printable(&param.about),
            taken: printable(&param.allowed.to_string()),
            kind: match param.kind {
                ParamKind::Boolean => "boolean",
                ParamKind::Integer => "integer",
                _ => "text",
            },
            is_required: param.default == ParamDefault::Required,
            name,
        }
    });
    fields.collect()
}

fn gaps(about: &About, zone: &Zone) -> Vec<String> {
    let text = |at: Option<Instant>| at.map_or_else(|| "an unknown time".to_owned(), |at| time(at, zone).text);
    let lines = about.coverage.iter().flat_map(|line| {
        let team = about.names.label(&line.team);
        let place = line.stream.map_or_else(|| team.clone(), |stream| format!("{stream} of {team}"));
        line.gaps.iter().map(move |gap| {
            let (from, to) = (text(gap.from), text(gap.to));
            printable(&format!("{place}, {from} to {to}: {} ({})", gap.reason, gap.subject))
        })
    });
    lines.take(GAPS_SHOWN).collect()
}

/// The whole report as a download.
pub async fn file(
    State(state): State<Arc<AppState>>,
    Path(name): Path<String>,
    input: Input,
    headers: HeaderMap,
) -> Page {
    let format = input.get("format").unwrap_or("csv");
    let known = FORMATS.into_iter().find(|(_, known, _)| known.as_str() == format);
    let Some((_, format, kind)) = known else {
        let names = FORMATS.map(|(_, known, _)| known.as_str()).join(", ");
        return Err(Problem::bad(format!("format: expected one of {names}")));
    };
    let input = input.with(&[("format", "")]);
    check_parameters(&input)?;
    let zone = input.parsed("tz")?.unwrap_or_else(|| zone_of(&headers));
    let report = catalog(&state).await?.find(&name)?.clone();
    let question = Question::of(&state, report, &input, zone).await?;
    let begin = question.asked.period.start.day();
    let name = format!("{}-{}-{begin}.{}", question.report.id.to_lowercase(), question.report.name, format.as_str());
    let body = question.file(&state, format).await?;
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    let disposition = format!("attachment; filename=\"{plain}\"");
    let disposition = HeaderValue::from_str(&disposition).map_err(|error| Problem::failed(error.to_string()))?;
    let kind = HeaderValue::from_static(kind);
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, disposition)], body).into_response())
}

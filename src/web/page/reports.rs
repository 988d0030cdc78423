//! The list of reports, and one report with its chart, its parameters and its first rows.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::config::When;
use crate::model::Instant;
use crate::report::{About, Format, Param, ParamDefault, ParamKind, Report, Section, Zone, local_time_text, printable};

use super::super::AppState;
use super::super::answer::reports::{Question, REPORT_TIME_MAX, catalog, check_parameters};
use super::super::answer::{period, zone};
use super::super::format::time;
use super::super::input::{Input, query};
use super::super::problem::Problem;
use super::page_request::{Frame, PageRequest, zone_of};
use super::{Page, Refused, shown_as, shown_page};

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

pub async fn reports(State(state): State<Arc<AppState>>, headers: HeaderMap, uri: Uri) -> Page {
    let request = PageRequest::of(&state, &headers, &uri, "Reports").await?;
    let refused = |problem| Refused::here(&state, &headers, &uri, problem);
    request.input.only(&["team"]).map_err(refused)?;
    let catalog = catalog(&state).await.map_err(refused)?;
    let team = query([("team", request.team_query().as_str())]);
    let listed = catalog.reports().iter().map(|report| ListedReport {
        id: printable(&report.id),
        title: printable(&report.title),
        question: printable(&report.question),
        controls: printable(&report.controls.join("; ")),
        severity: report.severity.map_or("", |rule| rule.as_str()),
        href: format!("/reports/{}{team}", report.name),
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

pub async fn report(
    State(state): State<Arc<AppState>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Page {
    let refused = |problem| Refused::here(&state, &headers, &uri, problem);
    let report = catalog(&state).await.and_then(|mut catalog| Ok(catalog.find(&name)?.clone())).map_err(refused)?;
    let request = PageRequest::of(&state, &headers, &uri, &report.title).await?;
    let is_asked = request.input.get("run").is_some();
    // A report that reads the whole archive or lacks a parameter waits for the button.
    let waits = if is_asked { None } else { waits(&report, &request.input) };
    let answer = if waits.is_some() { Ok(None) } else { answered(&state, &request, report.clone()).await.map(Some) };
    let (answer, problem, status) = match answer {
        Ok(answer) => (answer, None, StatusCode::OK),
        Err(problem) if problem.status.is_server_error() && problem.code == "failed" => return Err(refused(problem)),
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
        gaps_href: format!("/findings{}", query([("team", request.team_query().as_str()), ("kind", "gap")])),
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
    let input = without(&request.input, "run")?;
    check_parameters(&input)?;
    let links = FORMATS.map(|(label, format, _)| {
        let end = input.with(&[
            ("tz", request.zone.name()),
            ("format", format.as_str()),
            ("team", request.frame.team.as_str()),
        ]);
        (label.to_owned(), format!("/reports/{}/file{end}", report.name))
    });
    let question = Question::of(state, report, &with_team(request), request.zone.clone()).await?;
    question.section(state, ROWS, links.into()).await
}

/// The input without a parameter that only the page knows.
fn without(input: &Input, name: &str) -> Result<Input, Problem> {
    Input::of(input.with(&[(name, "")]).strip_prefix('?'))
}

/// The input with the team of the page, even if the address names none.
fn with_team(request: &PageRequest) -> Input {
    Input::of(request.input.with(&[("team", request.frame.team.as_str())]).strip_prefix('?')).unwrap_or_default()
}

fn period_shown(request: &PageRequest) -> (String, String) {
    let day = |at| local_time_text(at, &request.zone)[..10].to_owned();
    let given = |name: &str| match request.input.parsed::<When>(name) {
        Ok(Some(when)) => day(when.resolve_in(request.now, request.zone.rules())),
        _ => String::new(),
    };
    match (period(&request.input, request.now, &request.zone), given("to").is_empty()) {
        // The period ends now: leave the form field empty, so that it remains "now".
        (Ok(range), true) => (day(range.start), String::new()),
        (Ok(range), false) => (day(range.start), day(range.end)),
        (Err(_), _) => (given("from"), given("to")),
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
pub async fn file(State(state): State<Arc<AppState>>, Path(name): Path<String>, headers: HeaderMap, uri: Uri) -> Page {
    let refused = |problem| Refused::here(&state, &headers, &uri, problem);
    download(&state, &name, &headers, &uri).await.map_err(refused)
}

async fn download(state: &AppState, name: &str, headers: &HeaderMap, uri: &Uri) -> Result<Response, Problem> {
    let input = Input::of(uri.query())?;
    let format = input.get("format").unwrap_or("csv");
    let known = FORMATS.into_iter().find(|(_, known, _)| known.as_str() == format);
    let Some((_, format, kind)) = known else {
        let names = FORMATS.map(|(_, known, _)| known.as_str()).join(", ");
        return Err(Problem::bad(format!("format: expected one of {names}")));
    };
    let input = without(&input, "format")?;
    check_parameters(&input)?;
    let zone = zone(&input, zone_of(headers))?;
    let report = catalog(state).await?.find(name)?.clone();
    let question = Question::of(state, report, &input, zone).await?;
    let begin = question.asked.period.start.day();
    let name = format!("{}-{}-{begin}.{}", question.report.id.to_lowercase(), question.report.name, format.as_str());
    let body = question.file(state, format).await?;
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    let disposition = format!("attachment; filename=\"{plain}\"");
    let disposition = HeaderValue::from_str(&disposition).map_err(|error| Problem::failed(error.to_string()))?;
    let kind = HeaderValue::from_static(kind);
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, disposition)], body).into_response())
}

//! Every report in every format, over small archives, through the command line: the run succeeds, and the output reads back with
//! the expected content.

use crate::reporting;

use annals::clock::{Clock, SystemClock};
use annals::model::{Range, When};
use annals::report::{Engine, Format, Limits, Medium, Report, ReportInput, Zone, write_report};
use reporting::outputs::{self, About, OutputContent};
use reporting::{Outcome, Place, reports, required};

/// A period, and the expected exit code of a report over it.
struct Case {
    place: Place,
    from: &'static str,
    to: &'static str,
    zone: &'static str,
    code: i32,
    team: Option<&'static str>,
    gaps: usize,
}

/// Runs every report in every format from one reading of the archive, and each report once by the program, in
/// changing formats.
fn check(case: &Case) {
    let formats = Format::ALL.map(Format::as_str);
    let mut engine = Engine::open(case.place.data(), &Limits::default()).and_then(Engine::confined).unwrap();
    for (nth, report) in reports().iter().enumerate() {
        let asked = asked(case, report);
        let run = engine.run(report, &asked).unwrap_or_else(|e| panic!("{e}"));
        let mut rows = None;
        for format in Format::ALL {
            let mut stdout = Vec::new();
            write_report(&run, format, &mut stdout, Medium::default(), false).unwrap();
            let outcome = Outcome { code: 0, stdout, stderr: String::new() };
            check_output(case, report, format.as_str(), &outcome, &mut rows);
        }
        drop(run);
        let format = formats[nth % formats.len()];
        let outcome = ask(case, report, format);
        assert_eq!(outcome.code, case.code, "{} as {format}: {}", report.id, outcome.stderr);
        let said = if case.gaps > 0 { "recorded inside the period" } else { "" };
        assert!(
            outcome.stderr.contains(said) && outcome.stderr.lines().count() <= 1,
            "{}: {}",
            report.id,
            outcome.stderr
        );
        check_output(case, report, format, &outcome, &mut rows);
    }
}

fn asked(case: &Case, report: &Report) -> ReportInput {
    let zone: Zone = case.zone.parse().unwrap();
    let now = SystemClock::new().now();
    let day = |day: &str| day.parse::<When>().unwrap().resolve_in(now, zone.rules());
    let period = Range::new(day(case.from), day(case.to));
    let given: Vec<(String, String)> = required(report)
        .iter()
        .map(|param| param.trim_start_matches("--param=").split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let values = report.values(&given, now, zone.rules()).unwrap();
    ReportInput { period, team: None, zone, as_of: period.end, now, values }
}

fn ask(case: &Case, report: &Report, format: &str) -> Outcome {
    let params = required(report);
    let mut arguments = vec!["report", "run", &report.name, "--from", case.from, "--to", case.to, "--tz", case.zone];
    arguments.extend(["--format", format]);
    arguments.extend(params.iter().map(String::as_str));
    case.place.run(&arguments)
}

/// Reads the output back, and compares its rows with the other formats.
fn check_output(case: &Case, report: &Report, format: &str, outcome: &Outcome, rows: &mut Option<u64>) {
    let what = format!("{} as {format}", report.id);
    if format == "html" {
        check_page(case, report, outcome.text(), &what);
        return;
    }
    let output = outputs::read(format, outcome);
    assert_eq!(*rows.get_or_insert(output.rows), output.rows, "{what}");
    check_about(case, report, &output, &what);
}

/// Asserts that a page has the content of the other formats' statement, and loads and runs nothing.
fn check_page(case: &Case, report: &Report, page: &str, what: &str) {
    let head = case.team.map_or_else(|| "nothing was read yet".to_owned(), |team| case.place.head(team));
    let period = asked(case, report).period;
    let utc = format!("[{} .. {})", period.start, period.end);
    for said in [report.sha256.to_string(), head, utc, format!("<dd>{}</dd>", case.zone)] {
        assert!(page.contains(&said), "{what}: the page does not contain {said:?}");
    }
    for heading in ["Period", "Thresholds", "Rows", "Coverage", "Ledger head"] {
        assert!(page.contains(&format!("<dt>{heading}</dt>")), "{what}: no {heading}");
    }
    for param in &report.params {
        assert!(page.contains(&format!("<code>{} = ", param.name)), "{what}: {} is not on the page", param.name);
    }
    let small = page.to_ascii_lowercase();
    assert!(!["<script", "<link", "<iframe", "<img", "@import"].iter().any(|part| small.contains(part)), "{what}");
}

fn check_about(case: &Case, report: &Report, output: &OutputContent, what: &str) {
    let mut expected = vec![
        ("/report", format!("report: {} ", report.id)),
        ("/zone", format!("zone {}", case.zone)),
        ("/rows", format!("rows: {}", output.rows)),
        ("/query_sha256", format!("query: sha256 {}", report.sha256)),
        ("/annals_version", format!("made: by annals {} at 20", env!("CARGO_PKG_VERSION"))),
    ];
    if let Some(team) = case.team {
        expected.push(("/ledger/0/sha256", format!("ledger: {team} line 1 {}", case.place.head(team))));
        expected.push(("/coverage/0/stream", format!("coverage: {team} activity: ")));
    }
    if case.gaps > 0 {
        expected.push(("/coverage/1/gaps/0/from", "from 2026-10-14T10:00:00Z to 2026-10-14T12:30:00Z".to_owned()));
        expected.push(("/coverage/1/gaps/0/reason", "computer removed (device-1)".to_owned()));
    }
    for (key, line) in &expected {
        assert!(output.about.says(key, line), "{what}: the statement does not say {line:?} at {key}");
    }
    for param in &report.params {
        let is_said = match &output.about {
            About::Object(about) => about["params"].get(&param.name).is_some(),
            About::Lines(lines) => lines.contains(&format!("{}=", param.name)),
        };
        assert!(is_said, "{what}: {} is not in the statement", param.name);
    }
}

#[test]
fn on_an_empty_archive() {
    let (from, to) = ("2026-10-01", "2026-11-01");
    check(&Case { place: Place::empty(), from, to, zone: "UTC", code: 0, team: None, gaps: 0 });
}

#[test]
fn on_one_event() {
    let (from, to) = ("2026-10-10", "2026-10-11");
    check(&Case { place: Place::one_event(), from, to, zone: "Asia/Tokyo", code: 0, team: Some("acme"), gaps: 0 });
}

#[test]
fn on_a_month_with_a_gap() {
    let place = Place::month_with_a_gap();
    let team = Some("O'Brien & söhne");
    check(&Case { place, from: "2026-10-01", to: "2026-11-01", zone: "Europe/Prague", code: 3, team, gaps: 1 });
}

#[test]
fn over_the_beginning_of_summer_time() {
    let (from, to) = ("2026-03-28", "2026-03-31");
    let place = Place::summer_time();
    check(&Case { place, from, to, zone: "Europe/Berlin", code: 0, team: Some("acme"), gaps: 0 });
}

#[test]
fn over_the_end_of_summer_time() {
    let (from, to) = ("2026-10-24", "2026-10-27");
    let place = Place::summer_time();
    check(&Case { place, from, to, zone: "Europe/Berlin", code: 0, team: Some("acme"), gaps: 0 });
}

#[test]
fn on_the_sandbox_s_teams_whose_texts_are_hostile() {
    let place = Place::demo();
    let mut engine = Engine::open(place.data(), &Limits::default()).and_then(Engine::confined).unwrap();
    let case = Case { place, from: "-20d", to: "-0d", zone: "Europe/Berlin", code: 0, team: None, gaps: 0 };
    for report in reports() {
        let asked = asked(&case, &report);
        let run = engine.run(&report, &asked).unwrap_or_else(|e| panic!("{e}"));
        for format in [Format::Csv, Format::Markdown, Format::Table, Format::Ndjson] {
            let mut stdout = Vec::new();
            write_report(&run, format, &mut stdout, Medium::default(), false).unwrap();
            let output = outputs::read(format.as_str(), &Outcome { code: 0, stdout, stderr: String::new() });
            // A table has a maximum of rows.
            let shown = if format == Format::Table { run.about().rows.min(10_000) } else { run.about().rows };
            assert_eq!(output.rows, shown, "{} as {}", report.id, format.as_str());
        }
    }
}

#[test]
fn the_list_and_each_report_s_page_are_complete() {
    let place = Place::empty();
    let listed = place.run(&["report", "list", "--format", "json"]).json();
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, reports().iter().map(|report| report.id.clone()).collect::<Vec<_>>());
    for report in reports() {
        let shown = place.run(&["report", "show", &report.id.to_lowercase()]);
        assert_eq!((shown.code, shown.stderr.as_str()), (0, ""), "{}", report.id);
        for part in [&report.title, &report.question, &report.sha256.to_string(), &report.rows.sql] {
            assert!(shown.text().contains(part.as_str()), "{}: {part:?} is not shown", report.id);
        }
        assert!(report.params.iter().all(|param| shown.text().contains(&format!("parameter: {} (", param.name))));
    }
}

#[test]
fn a_page_shows_the_as_of_time_of_people() {
    let place = Place::one_event();
    let period = ["--from", "2026-10-10", "--to", "2026-10-11", "--tz", "Asia/Tokyo", "--format", "html"];
    for (as_of, said) in [(Some("2026-10-05"), true), (Some("2026-10-11"), false), (None, false)] {
        let given: Vec<&str> = as_of.iter().flat_map(|day| ["--as-of", *day]).collect();
        let page = place.run(&[&["report", "run", "r07"], &period[..], &given].concat());
        let page = page.text();
        assert_eq!(page.contains("<dt>As of</dt><dd>2026-10-05 00:00, Asia/Tokyo</dd>"), said, "{as_of:?}");
        assert_eq!(page.contains("<dt>As of</dt>"), said, "{as_of:?}");
    }
}

#[test]
fn bare_output_is_rows_and_the_statement_goes_to_standard_error() {
    let place = Place::month_with_a_gap();
    let period = ["--from", "2026-10-01", "--to", "2026-11-01", "--bare"];
    for format in ["json", "ndjson", "csv", "markdown", "table"] {
        let outcome = place.run(&[&["report", "run", "r23", "--format", format], &period[..]].concat());
        assert_eq!(outcome.code, 3, "{format}");
        assert!(!outcome.text().contains("annals 0."), "{format}: {}", outcome.text());
        for line in ["query: sha256 ", "gap: O'Brien & söhne connections: from 2026-10-14T10:00:00Z", "rows: "] {
            assert!(outcome.stderr.contains(line), "{format}: {}", outcome.stderr);
        }
        if format == "json" {
            assert!(outcome.json().is_array());
        }
    }
}

#[test]
fn a_file_takes_the_format_of_its_ending() {
    let place = Place::one_event();
    place.own_report("one.sql", "-- id: M1\n-- title: T\n-- question: Q?\nSELECT event_id FROM connections");
    let period = ["--from", "2026-10-01", "--to", "2026-11-01"];
    for (file, format) in [("out.parquet", "parquet"), ("out.json", "json"), ("out.md", "markdown"), ("out.csv", "csv")]
    {
        let outcome = place.run(&[&["report", "run", "one", "--queries", "own", "-o", file], &period[..]].concat());
        assert_eq!((outcome.code, outcome.stdout.len()), (0, 0), "{}", outcome.stderr);
        let stdout = std::fs::read(place.path().join(file)).unwrap();
        let output = outputs::read(format, &Outcome { stdout, ..outcome });
        assert_eq!(output.rows, 1, "{format}");
    }
}

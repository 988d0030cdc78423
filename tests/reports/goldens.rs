//! Runs every report of the catalog on a small archive with planted cases. Compares its rows and its chart's rows
//! with `tests/goldens/`, and its detections with a list made by hand.
//!
//! `ANNALS_GOLDENS=write cargo test --release --test reports` writes the goldens again: check the difference.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use annals::report::{Catalog, Param, ParamKind, Report, SeverityRule, ViewData};
use serde_json::Value;

use crate::golden;

use golden::answers::{Answer, Question, ask, required};
use golden::expected::{DETECTIONS, MORE};
use golden::world::World;

static WORLD: LazyLock<World> = LazyLock::new(World::write);

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens")
}

/// The usual question to every report that accepts it, and the other questions.
fn questions(catalog: &Catalog) -> Vec<(&Report, Question)> {
    let mut all = Vec::new();
    for report in catalog.reports() {
        let id: &'static str = report.id.clone().leak();
        if required(report).next().is_none() {
            all.push((report, Question::usual(id)));
        }
        all.extend(MORE.iter().filter(|more| more.report == id).map(|more| (report, *more)));
    }
    all
}

fn golden_name(report: &Report, question: &Question) -> String {
    let id = report.id.to_lowercase();
    let more = if question.name.is_empty() { String::new() } else { format!(".{}", question.name) };
    format!("{id}-{}{more}.golden", report.name)
}

fn rendered(answer: &Answer) -> String {
    format!("rows\n{}chart\n{}", answer.rows, answer.chart)
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a golden need not be durable")]
fn every_report_equals_its_golden() {
    let catalog = Catalog::embedded();
    assert!(catalog.faults().is_empty(), "{:?}", catalog.faults());
    let is_writing = std::env::var("ANNALS_GOLDENS").is_ok_and(|value| value == "write");
    let (data, mut faults, mut names) = (WORLD.data(), Vec::new(), BTreeSet::new());
    for (report, question) in questions(&catalog) {
        let name = golden_name(report, &question);
        let answer = rendered(&ask(&data, report, &question));
        let path = goldens().join(&name);
        if is_writing {
            fs::write(&path, &answer).unwrap();
        }
        match fs::read_to_string(&path) {
            Ok(golden) if golden == answer => {}
            Ok(golden) => faults.push(format!("{name}: {}", first_difference(&golden, &answer))),
            Err(e) => faults.push(format!("{name}: {e}")),
        }
        names.insert(name);
    }
    for entry in fs::read_dir(goldens()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !names.contains(&name) {
            faults.push(format!("{name}: a golden that no question has"));
        }
    }
    assert!(faults.is_empty(), "{}\nsee the top of this file for how goldens are made", faults.join("\n"));
}

fn first_difference(golden: &str, answer: &str) -> String {
    let mut lines = golden.lines().zip(answer.lines()).enumerate();
    match lines.find(|(_, (old, new))| old != new) {
        Some((at, (old, new))) => format!("line {}: expected {old}\n  got {new}", at + 1),
        None => format!("{} lines expected, {} got", golden.lines().count(), answer.lines().count()),
    }
}

fn is_detection(report: &Report, row: &Value) -> bool {
    match report.severity {
        None => false,
        Some(SeverityRule::Every(_)) => true,
        Some(SeverityRule::Column) => !row["severity"].is_null(),
    }
}

fn row_text(row: &Value, columns: &[&str]) -> String {
    let text = |column: &&str| match row.get(column) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => panic!("no column {column} in {row}"),
    };
    columns.iter().map(text).collect::<Vec<_>>().join("|")
}

#[test]
fn every_report_detects_exactly_the_planted_cases() {
    let catalog = Catalog::embedded();
    let data = WORLD.data();
    for (report, question) in questions(&catalog) {
        let name = [report.id.as_str(), question.name].join(".");
        let name = name.trim_end_matches('.');
        let Some(expected) = DETECTIONS.iter().find(|expected| expected.question == name) else {
            let is_left_out = report.severity.is_none() || !question.name.is_empty();
            assert!(is_left_out, "{name} detects something that tests/reports/golden/expected.rs does not name");
            continue;
        };
        let rows = ask(&data, report, &question).objects();
        let mut found: Vec<String> =
            rows.iter().filter(|row| is_detection(report, row)).map(|row| row_text(row, expected.columns)).collect();
        let mut planted: Vec<String> = expected.rows.iter().map(|row| (*row).to_owned()).collect();
        found.sort();
        planted.sort();
        assert_eq!(found, planted, "{name}");
    }
}

#[test]
fn every_report_answers_an_empty_archive_and_an_unknown_team() {
    let catalog = Catalog::embedded();
    for report in catalog.reports() {
        let usual = Question::usual("");
        let answer = ask(&ViewData::default(), report, &usual);
        assert_eq!(answer.rows, "", "{} of an archive without teams", report.id);
        let one = Question { team: Some("hudson"), ..usual };
        for row in ask(&WORLD.data(), report, &one).objects() {
            let team = row.get("team_id").unwrap_or_else(|| panic!("{}: no team_id", report.id));
            assert_eq!(team, "hudson", "{}: {row}", report.id);
        }
    }
}

#[test]
fn every_report_has_notes_and_a_titled_chart() {
    let catalog = Catalog::embedded();
    for report in catalog.reports() {
        let id = &report.id;
        assert!(!report.controls.is_empty(), "{id}: which controls does it support?");
        assert!(!report.notes.is_empty(), "{id}: what are its limits?");
        let chart = report.chart.as_ref().unwrap_or_else(|| panic!("{id}: no chart"));
        assert!(!chart.title.is_empty(), "{id}: its chart has no title");
        for param in &report.params {
            assert!(!param.about.is_empty(), "{id}: parameter {} is not explained", param.name);
            let has_order = matches!(param.kind, ParamKind::Integer | ParamKind::Number | ParamKind::Duration);
            let (_, most) = param.allowed.ends();
            assert!(!has_order || most.is_some(), "{id}: parameter {} has no range", param.name);
        }
        let text = report.text.to_lowercase();
        assert!(!text.contains("complian"), "{id}: a report supports a control, it does not prove compliance");
    }
}

#[test]
fn every_report_answers_at_both_ends_of_its_ranges() {
    let (catalog, data) = (Box::leak(Box::new(Catalog::embedded())), WORLD.data());
    for report in catalog.reports() {
        let ends = |is_least: bool| {
            let end = |param: &'static Param| match param.allowed.ends() {
                (least, _) if is_least => Some((param.name.as_str(), least?)),
                (_, most) => Some((param.name.as_str(), most?)),
            };
            report.params.iter().filter_map(end).collect::<Vec<_>>()
        };
        for params in [ends(true), ends(false)].into_iter().filter(|params| !params.is_empty()) {
            let _ = ask(&data, report, &Question { params: params.leak(), ..Question::usual("") });
        }
    }
}

/// The engine built from source has no ICU: a query that needs ICU fails there, or tries to download it.
#[test]
fn no_report_uses_icu() {
    for report in Catalog::embedded().reports() {
        let code: String = report.text.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
        let code = code.to_lowercase();
        for banned in
            ["time zone", "timestamptz", "timezone", "icu_", "now()", "current_", "today()", "age(", "to_timestamp("]
        {
            assert!(!code.contains(banned), "{}: {banned}", report.id);
        }
        let answer = ask(&WORLD.data(), report, &Question::usual(""));
        assert!(!answer.columns.is_empty(), "{}", report.id);
        for (name, kind) in answer.columns {
            assert!(!kind.contains("Timestamp") || kind.ends_with("None)"), "{}: {name} is {kind}", report.id);
            let is_time = kind.contains("Timestamp");
            let is_local = name.ends_with("_local");
            assert!(!is_local || is_time, "{}: {name} is {kind}", report.id);
        }
    }
}

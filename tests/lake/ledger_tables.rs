//! The tables `coverage` and `findings`, read by independent engines, compared with the program's own answers.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::faulty_service::{DAY, HOUR, Program, SINCE, Service};
use super::readers::Readers;
use super::tables::{FIRST, faults, json_of, newest, publish, read_once};

const COVERAGE: &str = "select team_id, stream, epoch_us(window_start)::bigint as window_start, \
    epoch_us(window_end)::bigint as window_end, state, reads, requests, events, late, \
    epoch_us(settled_at)::bigint as settled_at from coverage";
const FINDINGS: &str = "select team_id, stream, kind, subject, epoch_us(from_time)::bigint as from_time, \
    epoch_us(to_time)::bigint as to_time, reason, \"count\", epoch_us(found_at)::bigint as found_at, ledger_seq from findings";
/// 2025-01-01T00:00:00Z.
const JANUARY: i64 = 1_735_689_600;
const READERS: [&str; 2] = ["pyiceberg", "duckdb"];

/// All rows of a table, as lists of values.
fn read(readers: &mut Readers, program: &Program, table: &str) -> Vec<Vec<String>> {
    let time = if table == "coverage" { "window_start" } else { "found_at" };
    let job = json!({
        "metadata": newest(program, table), "files": [], "snapshot": null, "table": table, "time": time, "columns": null,
        "readers": READERS,
    });
    let found = readers.ask(&job);
    let [first, second] = READERS.map(|reader| {
        let rows = found[reader].as_array().unwrap_or_else(|| panic!("{table} by {reader}: {}", found[reader]));
        sorted(rows.iter().map(|row| row.as_array().unwrap().iter().map(Value::to_string).collect()).collect())
    });
    assert_eq!(first, second, "{table}: {READERS:?}");
    first
}

/// The rows of a query, as lists of values.
fn asked(program: &Program, query: &str) -> Vec<Vec<String>> {
    let run = program.run(&["sql", query, "--format", "csv"]).ended(0);
    let columns: Vec<&str> = run.stdout.lines().next().unwrap().split(',').collect();
    let row = |row: &Value| columns.iter().map(|column| row[*column].to_string()).collect();
    sorted(program.sql(query).iter().map(row).collect())
}

fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort();
    rows
}

fn equal_the_answers(readers: &mut Readers, program: &Program) {
    publish(program, &[]);
    let (coverage, findings) = (asked(program, COVERAGE), asked(program, FINDINGS));
    assert!(!coverage.is_empty());
    assert_eq!(read(readers, program, "coverage"), coverage);
    assert_eq!(read(readers, program, "findings"), findings);
    // `annals status` counts windows from the ledger's state.
    let status: Value = serde_json::from_str(&program.run(&["status", "--json"]).ended(0).stdout).unwrap();
    let mut windows: BTreeMap<String, u64> = BTreeMap::new();
    for row in &coverage {
        *windows.entry(row[1].trim_matches('"').to_owned()).or_default() += 1;
    }
    for stream in status["teams"][0]["streams"].as_array().unwrap() {
        let (name, shown) = (stream["stream"].as_str().unwrap(), stream["windows"].as_u64().unwrap());
        assert_eq!(windows.get(name).copied().unwrap_or(0), shown, "{name}: {stream}");
    }
}

#[test]
fn the_coverage_and_findings_tables_equal_the_program_s_answers() {
    let Some(mut readers) = Readers::start("other engines on the tables coverage and findings") else {
        return;
    };
    let (service, program) = read_once();
    equal_the_answers(&mut readers, &program);
    // A removed computer leaves a gap. Late events and re-scans change existing windows.
    service.world().remove_computer("team-one-computer-2", FIRST + HOUR, true);
    service.world().connection(DAY + HOUR, 99);
    service.set_clock(FIRST + 30 * HOUR);
    // The exit code reports the gap.
    program.sync(&SINCE).ended(3);
    equal_the_answers(&mut readers, &program);
    let findings = asked(&program, FINDINGS);
    assert!(findings.iter().any(|row| row[2] == "\"gap\""), "{findings:?}");
}

/// Windows of an expired month have the same state as in the reports.
#[test]
fn windows_of_an_expired_month_are_expired_in_the_table_too() {
    let Some(mut readers) = Readers::start("other engines on coverage after an expiry") else { return };
    let service = Service::at(JANUARY + 75 * 24 * HOUR);
    let program = Program::of(&service);
    for day in [0, 9, 40] {
        service.world().fill(JANUARY + day * 24 * HOUR, 0..1);
    }
    program.sync(&["--since", "2025-01-01"]).ended(0);
    equal_the_answers(&mut readers, &program);
    program.configure("[retention]\nconnections = \"1y\"\n");
    program.run(&["retention", "apply", "--trust-clock"]).ended(0);
    // The expiry published the tables again.
    assert_eq!(faults(&program, 0), []);
    let coverage = read(&mut readers, &program, "coverage");
    assert_eq!(coverage, asked(&program, COVERAGE));
    assert!(coverage.iter().any(|row| row[1] == "\"connections\"" && row[4] == "\"expired\""), "{coverage:?}");
    assert_eq!(json_of(&newest(&program, "connections"))["last-sequence-number"], 2);
}

//! `annals connect` in Python's standard duckdb client: the same views, rows and local times as in the program.

use std::process::Command;

use crate::common;

use common::python::python_with_duckdb;
use common::query_archive::Place;

/// Prints every answer as one line of JSON, with times as DuckDB's own text.
const CLIENT: &str = r#"
import json, sys, duckdb
client = duckdb.connect()
client.execute(open(sys.argv[1]).read())
for line in open(sys.argv[2]):
    answer = client.execute(json.loads(line))
    names = [column[0] for column in answer.description]
    for row in answer.fetchall():
        print(json.dumps(dict(zip(names, row)), ensure_ascii=False, separators=(",", ":")))
"#;

/// Both hours of each clock change in four zones of both hemispheres, to the second, and half-hour and historic
/// offsets.
fn zone_questions() -> Vec<String> {
    let mut questions = Vec::new();
    for (zone, spring, autumn) in [
        ("Europe/Berlin", "2026-03-29 01:00:00", "2026-10-25 01:00:00"),
        ("America/New_York", "2026-03-08 07:00:00", "2026-11-01 06:00:00"),
        ("Australia/Lord_Howe", "2026-10-03 15:30:00", "2026-04-04 15:00:00"),
        ("Asia/Kathmandu", "2026-03-29 01:00:00", "1985-12-31 18:30:00"),
        ("UTC", "2026-03-29 01:00:00", "2026-10-25 01:00:00"),
    ] {
        for change in [spring, autumn] {
            questions.push(format!(
                "SELECT n, local_time(TIMESTAMP '{change}' + to_seconds(n), '{zone}')::VARCHAR AS local, '{zone}' AS zone \
                 FROM (VALUES (-7200), (-3601), (-3600), (-1801), (-1), (0), (1), (1799), (3599), (3600), (7200)) t(n) \
                 ORDER BY n"
            ));
        }
    }
    questions.push(
        "SELECT local_time(NULL, 'UTC')::VARCHAR AS a, local_time(TIMESTAMP '2026-01-01', NULL)::VARCHAR AS b".into(),
    );
    questions
}

#[test]
fn python_s_duckdb_gives_the_same_answers() {
    let Some(python) = python_with_duckdb("`annals connect` against Python's duckdb") else { return };
    let place = Place::new();
    let write = |name: &str, text: &str| {
        let path = place.directory.path().join(name);
        std::io::Write::write_all(&mut std::fs::File::create(&path).expect("a file"), text.as_bytes())
            .expect("written");
        path
    };
    let views =
        place.answer(&["sql", "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1", "--format", "csv"]);
    // Another client cannot verify, so skip the views of `verify`.
    let views: Vec<&str> = views.lines().skip(1).filter(|view| !view.starts_with("verification")).collect();
    assert!(views.len() >= 8, "{views:?}");
    // Compare every column as text, because another client has other types.
    let rows = |view: &&str| format!("SELECT COLUMNS(*)::VARCHAR FROM {view} ORDER BY ALL");
    let types = |view: &&str| format!("SELECT '{view}' AS view, column_name, column_type FROM (DESCRIBE {view})");
    let questions = views.iter().map(rows).chain(views.iter().map(types)).chain(zone_questions());
    let questions: Vec<String> = questions.collect();
    let ours = place.answer_script(&questions);
    assert!(ours.lines().count() > 150, "{ours}");
    assert!(ours.contains(r#"{"n":0,"local":"2026-03-29 03:00:00","zone":"Europe/Berlin"}"#), "{ours}");
    let client = write("client.py", CLIENT);
    let connect = write("connect.sql", &place.answer(&["connect"]));
    let lines = questions.iter().map(|sql| serde_json::Value::from(sql.as_str()).to_string() + "\n");
    let asked = write("questions.jsonl", &lines.collect::<String>());
    let output = Command::new(python).args([&client, &connect, &asked]).output().expect("Python runs");
    let theirs = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (nth, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {nth}");
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

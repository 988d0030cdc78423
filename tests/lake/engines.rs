//! Other engines over an archive: the Python client's own tests, and clusters of Spark and Sail, which must give DuckDB's answers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::python::python_with_engines;
use crate::common::query_archive::Place;
use crate::common::third_party::missing;

const ANNALS: &str = env!("CARGO_BIN_EXE_annals");

fn client() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python")
}

/// Python in the client's folder, with the client's source and the path of this program in its environment.
fn python(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(client()).env("PYTHONPATH", client().join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("ANNALS", ANNALS);
    command
}

fn passed(what: &str, output: &Output) {
    let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{what}: {}\n{}", said[0], said[1]);
}

#[test]
fn the_client_s_own_tests_pass_and_its_types_hold() {
    let Some(program) = python_with_engines("the Python client") else { return };
    let tests =
        python(&program).args(["-m", "unittest", "discover", "-v", "-s", "tests"]).output().expect("Python runs");
    passed("tests", &tests);
    let said = String::from_utf8_lossy(&tests.stderr).into_owned();
    let ran = said.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u32>().ok());
    assert!(ran.is_some_and(|ran| ran >= 16), "{said}");
    if said.contains("skipped=") {
        let reasons: Vec<&str> = said.lines().filter(|line| line.contains("skipped '")).collect();
        missing("ministack", "the Python client with a bucket", &reasons.join("; "));
    }
    let types = python(&program).args(["-m", "mypy", "--cache-dir", "/dev/null", "src", "tests"]).output();
    passed("types", &types.expect("Python runs"));
}

/// Quarantined events have their own columns, and the sandbox makes no such events.
#[test]
fn the_client_reads_a_quarantine() {
    let Some(program) = python_with_engines("the Python client on a quarantine") else { return };
    let place = Place::new();
    let script = "import sys, annals_lake as lake\n\
                  archive = lake.Archive(sys.argv[1], verify=True)\n\
                  for name in ('connections', 'quarantine'):\n\
                  \x20   table = archive.dataset(name)\n\
                  \x20   assert table.polars().collect().to_arrow().cast(table.schema).equals(table.arrow()), name\n\
                  \x20   print(name, table.rows, table.arrow().num_rows)\n";
    let output = python(&program).args(["-c", script]).arg(place.archive()).output().expect("Python runs");
    passed("quarantine", &output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "connections 12 12\nquarantine 1 1\n");
}

#[test]
fn a_cluster_of_sail_gives_duckdb_s_answers() {
    assert_same_answers("sail");
}

#[test]
fn a_cluster_of_spark_gives_duckdb_s_answers() {
    assert_same_answers("spark");
}

fn assert_same_answers(engine: &str) {
    let Some(program) = python_with_engines("clusters") else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let archive = directory.path().join("archive");
    passed("archive", &python(&program).arg("tests/support.py").arg(&archive).output().expect("Python runs"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/engines.sh");
    let mut asked = Command::new(script);
    asked.arg("check").arg(&archive).args(["--engines", engine]).env("ANNALS", ANNALS);
    // The archive is small: optimising Java's code takes longer than it saves.
    let asked = asked.env("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1").output().expect("the script runs");
    if asked.status.code() == Some(3) {
        return missing(engine, "a cluster", &String::from_utf8_lossy(&asked.stderr));
    }
    passed(engine, &asked);
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    let answers = said.lines().filter(|line| line.contains(&format!(r#""engine": "{engine}""#)));
    // The start, six reports, the sessions, and the rows that Python reads on the workers.
    assert_eq!(answers.count(), 9, "{said}");
    assert_eq!(said.matches(r#""rows": 0,"#).count(), 1, "only the start has no rows: {said}");
}

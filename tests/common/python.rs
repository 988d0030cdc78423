//! The Python interpreters that some tests need.

use std::path::Path;
use std::process::Command;

use super::demanded::missing;

/// A Python with the standard `duckdb` package. Without one, the test of `untested` fails, or is skipped.
pub fn python_with_duckdb(untested: &str) -> Option<String> {
    installed("python", &["scripts/python-duckdb.sh"], untested)
}

/// Any Python 3, for tests that need only its standard library. Without one, the test of `untested` fails, or is skipped.
pub fn plain_python(untested: &str) -> Option<&'static str> {
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
    let found = ["python3", "python"].into_iter().find(is_there);
    if found.is_none() {
        missing("python", untested, "there is no python3: install Python 3.11 or newer");
    }
    found
}

/// The schemathesis program. Without it, the test of `untested` fails, or is skipped.
pub fn schemathesis(untested: &str) -> Option<String> {
    installed("python", &["scripts/python-schemathesis.sh"], untested)
}

/// A Python with Spark, Sail, DuckDB, Polars and Arrow. Without one, the test of `untested` fails, or is skipped.
pub fn python_with_engines(untested: &str) -> Option<String> {
    installed("engines", &["scripts/engines.sh", "python"], untested)
}

fn installed(part: &str, command: &[&str], untested: &str) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(command[0]);
    let output = Command::new(&script)
        .args(&command[1..])
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.code() {
        Some(0) => Some(text(&output.stdout)),
        Some(3) => {
            missing(part, untested, &text(&output.stderr));
            None
        }
        _ => panic!("{}: {}", script.display(), text(&output.stderr)),
    }
}

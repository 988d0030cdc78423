//! The Python interpreters that some tests need.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// A Python with the standard `duckdb` package. Without one, prints that the test skips `what`.
pub fn python_with_duckdb(what: &str) -> Option<String> {
    installed(&["scripts/python-duckdb.sh"], what)
}

/// Any Python 3, for tests that need only its standard library. Without one, prints that the test skips `what`.
pub fn plain_python(what: &str) -> Option<&'static str> {
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
    let found = ["python3", "python"].into_iter().find(is_there);
    if found.is_none() {
        let _ = std::io::stderr().lock().write_all(format!("\nSKIPPED: {what}: no Python\n").as_bytes());
    }
    found
}

/// The schemathesis program. Without it, prints that the test skips `what`.
pub fn schemathesis(what: &str) -> Option<String> {
    installed(&["scripts/python-schemathesis.sh"], what)
}

/// A Python with Spark, Sail, DuckDB, Polars and Arrow. Without one, prints that the test skips `what`.
pub fn python_with_engines(what: &str) -> Option<String> {
    installed(&["scripts/engines.sh", "python"], what)
}

fn installed(command: &[&str], what: &str) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(command[0]);
    let output = Command::new(&script)
        .args(&command[1..])
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.code() {
        Some(0) => Some(text(&output.stdout)),
        Some(3) => {
            let reason = format!("\nSKIPPED: {what}: {}\n", text(&output.stderr));
            // Write to standard error directly, because a passing test's output is hidden.
            let _ = std::io::stderr().lock().write_all(reason.as_bytes());
            None
        }
        _ => panic!("{}: {}", script.display(), text(&output.stderr)),
    }
}

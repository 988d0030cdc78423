//! `annals doctor` against a sandbox, and without one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A sandbox of its own process, stopped with the test.
struct Service {
    child: Child,
    base_url: String,
    token: String,
}

impl Service {
    fn start() -> Self {
        let mut child =
            program().args(["sandbox", "--days", "1", "--json"]).stdout(Stdio::piped()).spawn().expect("started");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output is ours");
        BufReader::new(stdout).read_line(&mut line).expect("one line when ready");
        let ready: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        Self { child, base_url: text(&ready["base_url"]), token: text(&ready["tokens"]["read_only"]) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().expect("it can be stopped");
        self.child.wait().expect("it ends");
    }
}

fn program() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("annals"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ANNALS_")) {
        command.env_remove(name);
    }
    command
}

/// The result of each check by name, and the exit code.
fn doctor(environment: &[(&str, &str)]) -> (Vec<(String, String)>, i32) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = program();
    command.args(["doctor", "--format", "ndjson"]).envs(environment.iter().copied()).current_dir(directory.path());
    let output = command.output().expect("the program runs");
    let stdout = String::from_utf8(output.stdout).expect("text");
    let said = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("hunter2"), "{said}");
    let checks = stdout.lines().map(|line| {
        let check: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let text = |key: &str| check[key].as_str().expect("text").to_owned();
        (text("check"), text("result"))
    });
    (checks.collect(), output.status.code().expect("not killed"))
}

fn result<'a>(checks: &'a [(String, String)], name: &str) -> Option<&'a str> {
    checks.iter().find(|(check, _)| check == name).map(|(_, result)| result.as_str())
}

#[test]
fn against_a_service_everything_is_looked_at() {
    let service = Service::start();
    let (checks, code) = doctor(&[("ANNALS_BASE_URL", &service.base_url), ("ANNALS_TOKEN", &service.token)]);
    let names: Vec<&str> = checks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["configuration", "token", "reach", "clock", "disk", "archive"]);
    assert_eq!(code, 0, "{checks:?}");
    for name in ["configuration", "token", "reach", "clock", "archive"] {
        assert_eq!(result(&checks, name), Some("ok"), "{checks:?}");
    }
    let (checks, code) = doctor(&[("ANNALS_BASE_URL", &service.base_url), ("ANNALS_TOKEN", "hunter2")]);
    assert_eq!((result(&checks, "reach"), code), (Some("failed"), 1), "{checks:?}");
}

#[test]
fn what_is_missing_is_named_and_the_rest_is_looked_at() {
    let (checks, code) = doctor(&[]);
    assert_eq!((result(&checks, "token"), result(&checks, "archive"), code), (Some("failed"), Some("ok"), 1));
    let (checks, code) = doctor(&[("ANNALS_BASE_URL", "http://127.0.0.1:9"), ("ANNALS_TOKEN", "hunter2")]);
    assert_eq!((result(&checks, "token"), result(&checks, "reach"), code), (Some("ok"), Some("failed"), 1));
    let (checks, code) = doctor(&[("ANNALS_BASE_URL", "http://127.0.0.1:9"), ("ANNALS_TOKEN", "hunter2\nx")]);
    assert_eq!((result(&checks, "token"), code), (Some("failed"), 1), "{checks:?}");
}

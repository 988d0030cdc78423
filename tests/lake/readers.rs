//! Independent engines, in one Python process that answers one job per line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

pub struct Readers {
    process: Child,
    asked: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Readers {
    /// `None` if the engines are not installed. Then it prints what the test skips.
    pub fn start(what: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = Command::new(root.join("scripts/lake-readers.sh")).arg("python").output().unwrap();
        if !found.status.success() {
            let why = String::from_utf8_lossy(&found.stderr);
            // Write to standard error directly, because a passing test's output is hidden.
            let reason = format!("\nSKIPPED: {what}: {}\n", why.trim());
            std::io::stderr().lock().write_all(reason.as_bytes()).unwrap();
            return None;
        }
        let python = String::from_utf8(found.stdout).unwrap();
        let mut process = Command::new(python.trim())
            .arg(root.join("tests/lake/readers.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (asked, answers) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        Some(Self { process, asked, answers })
    }

    pub fn ask(&mut self, job: &Value) -> Value {
        writeln!(self.asked, "{job}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the readers ended: {line:?}"))
    }

    /// Asserts that every engine of the job sees the rows of the job's files.
    #[track_caller]
    pub fn agree(&mut self, job: &Value, when: &str) {
        let found = self.ask(job);
        for reader in job["readers"].as_array().unwrap() {
            let reader = reader.as_str().unwrap();
            assert_eq!(found[reader], found["expected"], "{when}, by {reader}: {job}");
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
